#pragma once

#include <array>
#include <cstdint>

#include "tensor/tensor_view.h"

namespace treble {

/// The values of NF4's codes as the format publishes them: quantiles of the normal distribution.
inline constexpr std::array<float, 16> kNf4Values = {-1.0f,
                                                     -0.6961928009986877f,
                                                     -0.5250730514526367f,
                                                     -0.39491748809814453f,
                                                     -0.28444138169288635f,
                                                     -0.18477343022823334f,
                                                     -0.09105003625154495f,
                                                     0.0f,
                                                     0.07958029955625534f,
                                                     0.16093020141124725f,
                                                     0.24611230194568634f,
                                                     0.33791524171829224f,
                                                     0.44070982933044434f,
                                                     0.5626170039176941f,
                                                     0.7229568362236023f,
                                                     1.0f};

/// Blocks of a size that `count` elements need; the last one may be short.
inline std::int64_t num_blocks_of(std::int64_t count, std::int64_t block_size) {
  return (count + block_size - 1) / block_size;
}

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
