#include "cuda/choose_delta_rule.h"

namespace treble::cuda {

DeltaRuleKernel choose_delta_rule(const DeltaRuleShape& shape, KernelSet kernels) {
  // Key heads of every Clef size have 128 features; a block takes 64 features of a value head.
  constexpr std::int64_t kKeyHeadDim = 128, kValueBlock = 64;
  const bool fits = shape.dtype == DType::kBF16 && shape.is_aligned && shape.key_head_dim == kKeyHeadDim &&
                    shape.value_head_dim % kValueBlock == 0;
  return fits && kernels != KernelSet::kPlain ? DeltaRuleKernel::kMmaSm80 : DeltaRuleKernel::kSteps;
}

}  // namespace treble::cuda
