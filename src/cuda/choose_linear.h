#pragma once

#include <cstdint>

#include "tensor/tensor_view.h"

namespace treble::cuda {

enum class LinearKernel {
  kCublasLt,  ///< tensor cores through cuBLASLt; inputs in fp32 as three bf16 terms
  kTiles,     ///< fp32 arithmetic, any size and alignment: linear_tiles.cu
};

struct LinearShape {
  std::int64_t num_tokens, out_features, in_features;
  bool is_aligned;  ///< every row of input, weight and output starts at a multiple of 16 bytes
};

LinearKernel choose_linear(const LinearShape& shape);

}  // namespace treble::cuda
