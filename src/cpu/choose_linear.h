#pragma once

#include <cstdint>

#include "quant/linear_weight.h"
#include "tensor/dtype.h"

namespace treble::cpu {

enum class LinearKernel {
  kTiles,       ///< linear_tiles.h, int8_tiles.h: weights are widened on the way; every processor
  kOnednnBf16,  ///< onednn_bf16.h: bf16 products with fp32 sums, on processors that have them
  kInt8Blocks,  ///< int8_blocks.h: products of 8-bit codes, on processors that have them
};

struct LinearShape {
  DType input;
  std::int64_t num_tokens;
  WeightFormat format;
  std::int64_t out_features, in_features;
};

/// What a processor multiplies besides fp32.
struct NarrowProducts {
  bool has_bf16 = false;  ///< AVX512_BF16 or AMX
  bool has_int8 = false;  ///< AVX512_VNNI or AMX
};

LinearKernel choose_linear(const LinearShape& shape, NarrowProducts products);

}  // namespace treble::cpu
