#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <vector>

#include "tensor/tensor_view.h"

namespace treble {

/// Memory for a tensor of that shape, which `storage` then keeps alive.
inline TensorView allocate_kept(DType dtype, std::initializer_list<std::int64_t> shape,
                                std::vector<std::shared_ptr<const void>>& storage) {
  std::size_t num_bytes = size_of(dtype);
  for (const std::int64_t size : shape) num_bytes *= static_cast<std::size_t>(size);
  std::shared_ptr<std::byte[]> memory(new std::byte[num_bytes]);
  storage.push_back(memory);
  return TensorView(memory.get(), dtype, shape);
}

}  // namespace treble
