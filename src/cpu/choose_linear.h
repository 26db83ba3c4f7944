#pragma once

#include <cstdint>

#include "quant/linear_weight.h"
#include "tensor/dtype.h"

namespace treble::cpu {

enum class LinearKernel {
  kTiles,       ///< linear_tiles.h: fp32 products, weights widened on the way; every processor
  kOnednnBf16,  ///< onednn_bf16.h: bf16 products with fp32 sums, on processors that have them
};

struct LinearShape {
  DType input;
  std::int64_t num_tokens;
  WeightFormat format;
};

/// @param has_bf16_products  the processor has AVX512_BF16 or AMX
LinearKernel choose_linear(const LinearShape& shape, bool has_bf16_products);

}  // namespace treble::cpu
