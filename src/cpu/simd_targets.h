#pragma once

#include "base/simd_targets.h"  // under the name that this folder's files use
