#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda/handles.h"
#include "tensor/workspace.h"

namespace treble::cuda {

/// Brings small host data (indices, borders of sequences) to the device without waiting for it: the data is copied to
/// pinned memory before a call returns, and to the device in the order of the stream. Two halves take turns; a half is
/// written again when all that read it has run.
class HostStaging {
 public:
  static constexpr std::size_t kHalfBytes = std::size_t{8} << 20;

  HostStaging(Memory& device_memory, cudaStream_t stream);
  ~HostStaging();
  HostStaging(const HostStaging&) = delete;
  HostStaging& operator=(const HostStaging&) = delete;

  /// At most kHalfBytes. Where they lie on the device for the calls that follow in the stream, until kHalfBytes more
  /// have come.
  /// Bytes that came a moment ago are not copied again: the borders of a batch are the same in all layers.
  const void* bring(const void* host, std::size_t num_bytes);

  template <typename T>
  const T* bring(const T* host, std::int64_t count) {
    return static_cast<const T*>(bring(static_cast<const void*>(host), static_cast<std::size_t>(count) * sizeof(T)));
  }

  /// Copies bytes to device memory that the caller owns.
  void copy(const void* host, std::size_t num_bytes, void* device);

 private:
  struct Recent {
    std::size_t offset, num_bytes;
  };

  /// Pinned memory for so many bytes, at most kHalfBytes; its offset.
  std::size_t take(std::size_t num_bytes);
  /// Copies the bytes there.
  std::size_t pin(const void* host, std::size_t num_bytes);

  Memory& device_memory_;
  cudaStream_t stream_;
  PinnedMemory pinned_;
  Event half_is_free_[2];
  std::byte* device_;  // the last to be taken: what was taken before it gives itself back
  int half_ = 0;
  std::size_t used_bytes_ = 0;  // of the half
  std::vector<Recent> recent_;  // in this half, the latest last
};

}  // namespace treble::cuda
