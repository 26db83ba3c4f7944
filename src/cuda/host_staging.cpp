#include "cuda/host_staging.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>
#include <cstring>

#include "cuda/status.h"

namespace treble::cuda {
namespace {

constexpr std::size_t kAlignment = 16;
constexpr std::size_t kMostRecent = 8;
constexpr std::size_t kLargestCompared = 64 << 10;  // bytes

}  // namespace

HostStaging::HostStaging(Memory& device_memory, cudaStream_t stream)
    : device_memory_(device_memory),
      stream_(stream),
      pinned_(make_pinned(2 * kHalfBytes)),
      half_is_free_{make_event(), make_event()},
      device_(static_cast<std::byte*>(device_memory.allocate(2 * kHalfBytes))) {}

HostStaging::~HostStaging() {
  device_memory_.free(device_, 2 * kHalfBytes);
}

std::size_t HostStaging::take(std::size_t num_bytes) {
  const std::size_t rounded = (num_bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (used_bytes_ + rounded > kHalfBytes) {
    check(cudaEventRecord(half_is_free_[half_].get(), stream_), "staging: marking a half");
    half_ = 1 - half_;
    check(cudaEventSynchronize(half_is_free_[half_].get()), "staging: waiting for a half");
    used_bytes_ = 0;
    recent_.clear();
  }
  const std::size_t offset = static_cast<std::size_t>(half_) * kHalfBytes + used_bytes_;
  used_bytes_ += rounded;
  return offset;
}

std::size_t HostStaging::pin(const void* host, std::size_t num_bytes) {
  const std::size_t offset = take(num_bytes);
  std::memcpy(static_cast<std::byte*>(pinned_.get()) + offset, host, num_bytes);
  return offset;
}

const void* HostStaging::bring(const void* host, std::size_t num_bytes) {
  if (num_bytes > kHalfBytes) {
    throw Error(ErrorCode::kInternal,
                fmt::format("cuda: {} bytes of indices in one call, expected at most {}", num_bytes, kHalfBytes));
  }
  const auto* pinned = static_cast<const std::byte*>(pinned_.get());
  if (num_bytes <= kLargestCompared) {
    const auto same = std::find_if(recent_.rbegin(), recent_.rend(), [&](const Recent& recent) {
      return recent.num_bytes == num_bytes && std::memcmp(pinned + recent.offset, host, num_bytes) == 0;
    });
    if (same != recent_.rend()) return device_ + same->offset;
  }
  const std::size_t offset = pin(host, num_bytes);
  check(cudaMemcpyAsync(device_ + offset, pinned + offset, num_bytes, cudaMemcpyHostToDevice, stream_),
        "copying indices to the device");
  if (num_bytes <= kLargestCompared) {
    if (recent_.size() == kMostRecent) recent_.erase(recent_.begin());
    recent_.push_back({offset, num_bytes});
  }
  return device_ + offset;
}

void HostStaging::copy(const void* host, std::size_t num_bytes, void* device) {
  if (num_bytes == 0) return;
  // More than a half is read where it lies, and the call waits for that.
  const void* source = host;
  if (num_bytes <= kHalfBytes) source = static_cast<const std::byte*>(pinned_.get()) + pin(host, num_bytes);
  check(cudaMemcpyAsync(device, source, num_bytes, cudaMemcpyHostToDevice, stream_), "copying inputs to the device");
  if (source == host) check(cudaStreamSynchronize(stream_), "copying inputs to the device");
}

}  // namespace treble::cuda
