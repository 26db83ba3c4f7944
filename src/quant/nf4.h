#pragma once

#include <cstdint>

#include "tensor/tensor_view.h"

namespace treble {

/// What turns the 4-bit codes of bitsandbytes into weights. Element e of the weight, flattened row by row, is the high
/// half of byte e / 2 where e is even and the low half where it is odd. Its block is e / block_size: blocks run across
/// the borders of rows.
///
///     w[e] = dtype(code_values[code] * absmax of the block)            one fp32 product, one rounding
///
/// With double quantisation the scales are 8-bit themselves, each step rounded to fp32:
///     absmax of block b = nested_values[absmax[b]] * nested_absmax[b / nested_block_size] + nested_offset
struct Nf4 {
  std::int64_t out_features = 0, in_features = 0;
  std::int64_t first_element = 0;  ///< of row 0; not 0 for some rows of a larger weight
  std::int64_t block_size = 64;
  DType dtype = DType::kBF16;  ///< what weights are rounded to: bf16, f16 or f32
  TensorView code_values;      ///< [16] f32
  TensorView absmax;           ///< [blocks] f32, or u8 with double quantisation

  std::int64_t nested_block_size = 256;
  TensorView nested_values;  ///< [256] f32; empty without double quantisation, as is the next one
  TensorView nested_absmax;  ///< [blocks / nested_block_size, rounded up] f32
  float nested_offset = 0;

  /// The fp32 scale of a block. For host memory.
  float absmax_of(std::int64_t block) const {
    if (!nested_values) return absmax.as<float>()[block];
    const float scaled = nested_values.as<float>()[absmax.as<std::uint8_t>()[block]] *
                         nested_absmax.as<float>()[block / nested_block_size];
    return scaled + nested_offset;
  }
};

}  // namespace treble
