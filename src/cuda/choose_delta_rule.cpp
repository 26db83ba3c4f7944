#include "cuda/choose_delta_rule.h"

namespace treble::cuda {

namespace {

constexpr std::int64_t kValueBlock = 64;  // features of a value head that are computed together

}  // namespace

DeltaRuleKernel choose_delta_rule(const DeltaRuleShape& shape, int compute_capability, KernelSet kernels) {
  constexpr std::int64_t kKeyHeadDim = 128;  // of every Clef size
  const bool fits = shape.dtype == DType::kBF16 && shape.is_aligned && shape.key_head_dim == kKeyHeadDim &&
                    shape.value_head_dim % kValueBlock == 0;
  if (!fits || kernels == KernelSet::kPlain) return DeltaRuleKernel::kSteps;
  // Nine is for Hopper only: code for 9.0a runs on no other device.
  constexpr int kHopper = 90;
  return compute_capability == kHopper && kernels == KernelSet::kBest ? DeltaRuleKernel::kWgmmaSm90
                                                                      : DeltaRuleKernel::kMmaSm80;
}

int choose_delta_rule_warpgroups(std::int64_t num_heads, std::int64_t value_head_dim, int num_sms) {
  // A block has a multiprocessor's shared memory to itself. While there are multiprocessors enough, the shortest chain
  // wins: one warpgroup in each. Two fill each other's gaps and share what they read.
  const std::int64_t num_blocks = num_heads * (value_head_dim / kValueBlock);
  return num_blocks > num_sms && value_head_dim % (2 * kValueBlock) == 0 ? 2 : 1;
}

}  // namespace treble::cuda
