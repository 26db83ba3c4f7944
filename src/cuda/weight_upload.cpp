#include "cuda/weight_upload.h"

#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "cuda/memory_sizes.h"
#include "cuda/status.h"

namespace treble::cuda {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{32} << 20;
constexpr std::size_t kAlignment = 4096;                    // of a weight in a buffer: whole pages are copied fastest
constexpr std::int64_t kReadGrain = std::int64_t{1} << 20;  // bytes a task

}  // namespace

void parallel_read(const HostWeight& from, std::size_t begin, std::size_t num_bytes, void* to) {
  parallel_ranges(static_cast<std::int64_t>(num_bytes), kReadGrain, [&](std::int64_t first, std::int64_t last) {
    std::byte* out = static_cast<std::byte*>(to) + first;
    const std::size_t offset = begin + static_cast<std::size_t>(first), count = static_cast<std::size_t>(last - first);
    if (from.file) {
      read_bytes({from.file->descriptor, from.file->offset + offset}, count, out);
    } else {
      std::memcpy(out, static_cast<const std::byte*>(from.view.data()) + offset, count);
    }
  });
}

WeightUpload::WeightUpload(cudaStream_t stream) : stream_(stream) {}

void WeightUpload::take_next_buffer() {
  if (buffers_[current_].memory) {
    check(cudaEventRecord(buffers_[current_].is_free.get(), stream_), "copying weights to the device");
    current_ = (current_ + 1) % buffers_.size();
  }
  used_bytes_ = 0;
  Buffer& buffer = buffers_[current_];
  if (buffer.memory) {
    check(cudaEventSynchronize(buffer.is_free.get()), "waiting for weights to arrive");
  } else {
    buffer.is_free = make_event();
    buffer.memory = make_pinned(kBufferBytes);
  }
}

void WeightUpload::copy(const HostWeight& host, void* device) {
  const std::size_t num_bytes = host.view.num_bytes();
  for (std::size_t done = 0; done < num_bytes;) {
    if (!buffers_[current_].memory || used_bytes_ >= kBufferBytes) take_next_buffer();
    std::byte* const pinned = static_cast<std::byte*>(buffers_[current_].memory.get()) + used_bytes_;
    const std::size_t count = std::min(kBufferBytes - used_bytes_, num_bytes - done);
    parallel_read(host, done, count, pinned);
    check(cudaMemcpyAsync(static_cast<std::byte*>(device) + done, pinned, count, cudaMemcpyHostToDevice, stream_),
          "copying weights to the device");
    used_bytes_ += round_up(count, kAlignment);
    done += count;
  }
}

}  // namespace treble::cuda
