#pragma once

#include <array>
#include <cstddef>

#include "cuda/handles.h"

namespace treble::cuda {

/// Copies weights to the device through pinned buffers: all threads fill one while the others are on their way.
class WeightUpload {
 public:
  explicit WeightUpload(cudaStream_t stream);

  /// The host memory may go when this returns; calls that follow in the stream see the copy.
  void copy(const void* host, std::size_t num_bytes, void* device);

 private:
  struct Buffer {
    PinnedMemory memory;
    Event is_free;
  };

  cudaStream_t stream_;
  std::array<Buffer, 3> buffers_;
  std::size_t next_ = 0;
};

/// Copies on all threads.
void parallel_copy(const void* from, std::size_t num_bytes, void* to);

}  // namespace treble::cuda
