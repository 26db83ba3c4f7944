#pragma once

#include <treble/int8_activations.h>

#include "ops/ops.h"

namespace treble::cpu {

/// Writes rows [begin, end) of out's codes and scales: of `plain`, times out's input_factor, rotated.
/// In the comfy modes f32 values are rounded to bf16 first, as those modes are defined on bf16.
/// @param plain    [T, in_features] f32 or bf16, rows may be strided
/// @param scratch  in_features floats
void quantize_rows(const TensorView& plain, const QuantizedInput& out, Int8Activations mode, std::int64_t begin,
                   std::int64_t end, float* scratch);

}  // namespace treble::cpu
