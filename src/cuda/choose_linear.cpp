#include "cuda/choose_linear.h"

namespace treble::cuda {

LinearKernel choose_linear(const LinearShape& shape) {
  // Eight bf16 elements are the 16 bytes that a tensor core's loads take.
  constexpr std::int64_t kElements = 8;
  const bool fits = shape.is_aligned && shape.in_features % kElements == 0 && shape.out_features % kElements == 0;
  return fits ? LinearKernel::kCublasLt : LinearKernel::kTiles;
}

SwigluKernel choose_swiglu(const SwigluShape& shape, int compute_capability, KernelSet kernels) {
  // Nine is for Hopper only: code for 9.0a runs on no other device.
  const bool has_wgmma = compute_capability == 90 && kernels == KernelSet::kBest;
  constexpr std::int64_t kElements = 8;  // 16 bytes, of which tensor maps are made
  const bool fits = shape.dtype == DType::kBF16 && shape.is_aligned && shape.is_ordered && shape.in_features > 0 &&
                    shape.in_features % kElements == 0 && shape.out_features % kElements == 0;
  return has_wgmma && fits ? SwigluKernel::kWgmmaSm90 : SwigluKernel::kSeparate;
}

}  // namespace treble::cuda
