#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "tensor/tensor_view.h"

namespace treble {

/// A view of integers in host memory. Operations only read it.
inline TensorView host_view(const std::vector<std::int32_t>& values, std::initializer_list<std::int64_t> shape) {
  return TensorView(const_cast<std::int32_t*>(values.data()), DType::kI32, shape);
}

inline TensorView host_view(const std::vector<std::int32_t>& values) {
  return host_view(values, {static_cast<std::int64_t>(values.size())});
}

}  // namespace treble
