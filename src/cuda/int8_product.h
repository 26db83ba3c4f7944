#pragma once

#include <cstdint>

#include "tensor/dtype.h"

// Products of 8-bit codes, as every kernel of them takes them: linear_int8_*.

namespace treble::cuda {

/// An input that was rotated and quantised.
struct Int8Operands {
  const std::int8_t* codes;   ///< [T, in_features]
  std::int64_t codes_stride;  ///< elements
  const float* scale;         ///< [T]
};

struct Int8Weight {
  const std::int8_t* codes;  ///< [out_features, in_features], rows next to each other
  const float* row_scale;    ///< [out_features]
  const float* bias;         ///< [out_features], or null
};

/// out (+)= (sum of products of codes) * scale of the token * scale of the row + bias. The sum is exact in 32 bits
/// while in_features is less than 2^17; the rest is fp32, each step rounded, in that order; the result is rounded to
/// the output's type once.
struct Int8Product {
  std::int64_t num_tokens, out_features, in_features;
  Int8Operands input;
  Int8Weight weight;
  void* out;                ///< [T, out_features]
  std::int64_t out_stride;  ///< elements
  DType out_dtype;          ///< f32 or bf16
  bool adds;                ///< to what is in out
};

}  // namespace treble::cuda
