#pragma once

#include <cstddef>
#include <cstring>

#include "tensor/bfloat16.h"
#include "tensor/half.h"
#include "tensor/tensor_view.h"

namespace treble {

inline bool is_floating(DType dtype) {
  return dtype == DType::kF64 || dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

/// A value from memory of any alignment.
template <typename T>
T read_unaligned(const void* data, std::int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(data) + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

/// Element `index` of a contiguous floating tensor in host memory of any alignment, widened to fp32 (f64 is rounded).
inline float element(const TensorView& view, std::int64_t index) {
  switch (view.dtype()) {
    case DType::kF64:
      return static_cast<float>(read_unaligned<double>(view.data(), index));
    case DType::kF32:
      return read_unaligned<float>(view.data(), index);
    case DType::kF16:
      return half_to_float(read_unaligned<std::uint16_t>(view.data(), index));
    default:
      return to_float(read_unaligned<bfloat16>(view.data(), index));
  }
}

/// Elements [first, first + count) of such a tensor, widened to fp32.
inline void widen(const TensorView& view, std::int64_t first, std::int64_t count, float* out) {
  if (view.dtype() != DType::kBF16) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = element(view, first + i);
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) out[i] = to_float(read_unaligned<bfloat16>(view.data(), first + i));
}

}  // namespace treble
