#include "cuda/choose_linear.h"

namespace treble::cuda {

LinearKernel choose_linear(const LinearShape& shape) {
  // Eight bf16 elements are the 16 bytes that a tensor core's loads take.
  constexpr std::int64_t kElements = 8;
  const bool fits = shape.is_aligned && shape.in_features % kElements == 0 && shape.out_features % kElements == 0;
  return fits ? LinearKernel::kCublasLt : LinearKernel::kTiles;
}

}  // namespace treble::cuda
