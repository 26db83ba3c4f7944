#pragma once

#include <array>
#include <cstddef>

#include "cuda/handles.h"
#include "ops/ops.h"

namespace treble::cuda {

/// Copies weights to the device through pinned buffers: all threads fill one while the others are on their way. What
/// lies in a file is read from it (read_bytes), not through its mapping.
class WeightUpload {
 public:
  explicit WeightUpload(cudaStream_t stream);

  /// The host memory may go when this returns; calls that follow in the stream see the copy.
  /// @throws Error kDevice; kCheckpoint: the file cannot be read
  void copy(const HostWeight& host, void* device);

 private:
  struct Buffer {
    PinnedMemory memory;
    Event is_free;
  };

  /// Goes on to the next buffer, and waits until what was in it has arrived.
  void take_next_buffer();

  cudaStream_t stream_;
  std::array<Buffer, 3> buffers_;
  std::size_t current_ = 0;
  std::size_t used_bytes_ = 0;  // of the current buffer: small weights follow each other in one
};

/// Reads bytes [begin, begin + num_bytes) of a weight on all threads.
void parallel_read(const HostWeight& from, std::size_t begin, std::size_t num_bytes, void* to);

}  // namespace treble::cuda
