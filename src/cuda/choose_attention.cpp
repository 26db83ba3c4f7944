#include "cuda/choose_attention.h"

#include <initializer_list>

namespace treble::cuda {

std::int64_t padded_head_dim(std::int64_t head_dim) {
  // 72, the vision tower's, is not a multiple of the 16 terms of one product.
  for (const std::int64_t built : {64, 80, 128, 256}) {
    if (head_dim <= built) return built;
  }
  return 0;
}

AttentionKernel choose_attention(const AttentionShape& shape, int compute_capability, KernelSet kernels) {
  if (kernels == KernelSet::kPlain) return AttentionKernel::kRows;
  constexpr std::int64_t kFewQueriesDim = 64;
  if (shape.dtype == DType::kF32 && shape.head_dim <= kFewQueriesDim && !shape.is_causal && !shape.has_gate)
    return AttentionKernel::kFewQueries;
  constexpr std::int64_t kElements = 8;  // 16 bytes of bf16
  const bool fits = shape.dtype == DType::kBF16 && shape.is_aligned && shape.head_dim % kElements == 0 &&
                    padded_head_dim(shape.head_dim) != 0;
  if (!fits) return AttentionKernel::kRows;
  // Hopper's kernel looks for the highest score before it scales.
  const bool fits_wgmma = shape.head_dim == 256 && shape.has_positive_scale;
  return fits_wgmma && has_wgmma(compute_capability, kernels) ? AttentionKernel::kWgmmaSm90 : AttentionKernel::kMmaSm80;
}

}  // namespace treble::cuda
