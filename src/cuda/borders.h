#pragma once

#include <cstdint>
#include <span>

#include "tensor/tensor_view.h"

namespace treble::cuda {

/// Of sequences, [N + 1] i32 in host memory.
inline std::span<const std::int32_t> borders_of(const TensorView& cu_seqlens) {
  return {cu_seqlens.as<std::int32_t>(), static_cast<std::size_t>(cu_seqlens.size(0))};
}

}  // namespace treble::cuda
