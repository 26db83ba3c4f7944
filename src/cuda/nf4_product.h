#pragma once

#include <cstdint>

namespace treble::cuda {

/// What turns the 4-bit codes of one weight into bf16 (quant/nf4.h): double quantisation, blocks of 64. In the device's
/// memory.
struct Nf4Scales {
  const float* code_values;    // [16]
  const std::uint8_t* absmax;  // [blocks], 8-byte aligned
  const float* nested_values;  // [256]
  const float* nested_absmax;  // [blocks / nested_block_size, rounded up]
  float nested_offset;
  int out_features;  // times in_features / 64, the blocks, less than 2^31
};

/// Weights whose codes are the rows of one matrix, each with its own scales.
struct Nf4Weights {
  static constexpr int kMost = 4;  // projections that read one input
  const std::uint8_t* codes;       // [out_features of all, in_features / 2], 16-byte aligned
  Nf4Scales scales[kMost];
  int count;
  int nested_block_shift;  // binary logarithm of their nested_block_size, of at least 8 blocks
};

/// out [T, out_features] = input W^T, or out += that: the fp32 sum of both, rounded once. Input and output bf16, their
/// rows at multiples of 16 bytes; W = bf16(code value * scale), one fp32 product and one rounding.
struct Nf4Product {
  std::int64_t num_tokens, out_features, in_features;  // out_features a multiple of 16, in_features of 512
  const void* input;
  std::int64_t input_stride;  // elements
  Nf4Weights weights;
  void* out;
  std::int64_t out_stride;
  bool adds = false;
};

/// out [T, out_features] = silu(input gate^T) * (input up^T), rounded as SwigluProduct's.
struct Nf4SwigluProduct {
  std::int64_t num_tokens, out_features, in_features;  // out_features a multiple of 8, in_features of 512
  const void* input;
  std::int64_t input_stride;
  const std::uint8_t *gate_codes, *up_codes;  // up at the higher address, less than 2^40 bytes away
  Nf4Scales gate, up;
  int nested_block_shift;
  void* out;
  std::int64_t out_stride;
};

}  // namespace treble::cuda
