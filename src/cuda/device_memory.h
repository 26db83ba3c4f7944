#pragma once

#include <cstddef>

#include "tensor/workspace.h"

namespace treble::cuda {

/// Memory of one GPU, for activations and for scratch.
class DeviceMemory final : public Memory {
 public:
  /// @param device  ordinal of the CUDA runtime
  explicit DeviceMemory(int device) : device_(device) {}

  void* allocate(std::size_t num_bytes) override;
  void free(void* block, std::size_t num_bytes) noexcept override;

  std::size_t allocated_bytes() const { return allocated_bytes_; }

 private:
  int device_;
  std::size_t allocated_bytes_ = 0;
};

}  // namespace treble::cuda
