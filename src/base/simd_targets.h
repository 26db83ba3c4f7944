#pragma once

// Included before any Highway header: what the vector code is built for.
// SSE4 counts as present without AES instructions, which the baseline (x86-64-v2) does not promise and nothing here
// uses. Built are then the baseline SSE4 and, chosen at run time, AVX2 and AVX-512.
#define HWY_DISABLE_PCLMUL_AES
