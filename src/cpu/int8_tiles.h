#pragma once

#include "cpu/linear_tiles.h"
#include "ops/ops.h"

// Products of 8-bit codes with exact sums in 32 bits: 17,408 products of 128 * 128 are below 2^29. Tiles are those of
// linear_tiles.h, but nothing is packed or widened into memory: codes become 16-bit integers on their way into a
// register, where neighbours are multiplied and added in pairs.

namespace treble::cpu {

/// product[t, o] = (sum of codes) * scale[t] * row_scale[o] + bias[o], each step rounded to fp32.
/// @param tokens   at most kPassTokens rows
/// @param weight   kInt8, at most kPassOutputs rows
/// @param product  [num_tokens, kPassOutputs] f32, contiguous; columns past the weight's rows are scratch
void multiply_int8_pass(const QuantizedInput& tokens, const LinearWeight& weight, const TensorView& product);

/// The second half alone: from sums [num_tokens, out_features] i32, rows strided, to out [num_tokens, out_features] f32
/// or bf16. In place is fine.
void scale_sums(const TensorView& sums, const TensorView& token_scale, const LinearWeight& weight,
                const TensorView& out);

}  // namespace treble::cpu
