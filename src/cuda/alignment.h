#pragma once

#include <cstdint>

#include "tensor/tensor_view.h"

namespace treble::cuda {

/// What a thread reads at once, and what tensor cores' copies take: 16 bytes.
inline bool is_aligned_address(const void* address, std::int64_t stride_bytes = 0) {
  return reinterpret_cast<std::uintptr_t>(address) % 16 == 0 && stride_bytes % 16 == 0;
}

/// Whether every row of these views starts at a multiple of 16 bytes, so that eight elements of bf16 may be read at
/// once.
template <typename... Views>
bool rows_are_aligned(const Views&... views) {
  const auto is_aligned = [](const TensorView& view) {
    if (!view) return true;
    const auto element = static_cast<std::int64_t>(size_of(view.dtype()));
    bool aligned = is_aligned_address(view.data());
    for (int dim = 0; dim + 1 < view.rank(); ++dim) aligned = aligned && view.stride(dim) * element % 16 == 0;
    return aligned;
  };
  return (is_aligned(views) && ...);
}

}  // namespace treble::cuda
