#include "cuda/weight_upload.h"

#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "cuda/status.h"

namespace treble::cuda {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{32} << 20;
constexpr std::int64_t kCopyGrain = std::int64_t{1} << 20;  // bytes a task

}  // namespace

void parallel_copy(const void* from, std::size_t num_bytes, void* to) {
  parallel_ranges(static_cast<std::int64_t>(num_bytes), kCopyGrain, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(static_cast<std::byte*>(to) + begin, static_cast<const std::byte*>(from) + begin,
                static_cast<std::size_t>(end - begin));
  });
}

WeightUpload::WeightUpload(cudaStream_t stream) : stream_(stream) {}

void WeightUpload::copy(const void* host, std::size_t num_bytes, void* device) {
  for (std::size_t done = 0; done < num_bytes;) {
    Buffer& buffer = buffers_[next_];
    next_ = (next_ + 1) % buffers_.size();
    if (!buffer.memory) {
      buffer.memory = make_pinned(kBufferBytes);
      buffer.is_free = make_event();
    } else {
      check(cudaEventSynchronize(buffer.is_free.get()), "waiting for weights to arrive");
    }
    const std::size_t count = std::min(kBufferBytes, num_bytes - done);
    parallel_copy(static_cast<const std::byte*>(host) + done, count, buffer.memory.get());
    check(cudaMemcpyAsync(static_cast<std::byte*>(device) + done, buffer.memory.get(), count, cudaMemcpyHostToDevice,
                          stream_),
          "copying weights to the device");
    check(cudaEventRecord(buffer.is_free.get(), stream_), "copying weights to the device");
    done += count;
  }
}

}  // namespace treble::cuda
