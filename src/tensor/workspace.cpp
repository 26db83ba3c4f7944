#include "tensor/workspace.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>
#include <new>

namespace treble {
namespace {

constexpr std::size_t kAlignment = 64;            // a cache line; the widest vector register
constexpr std::size_t kSmallestBlock = 16 << 20;  // bytes

class HostMemory final : public Memory {
 public:
  void* allocate(std::size_t num_bytes) override {
    void* block = ::operator new(num_bytes, std::align_val_t(kAlignment), std::nothrow);
    if (!block)
      throw Error(ErrorCode::kDevice, fmt::format("cpu: no {} MiB of memory left; shorten the input", num_bytes >> 20));
    return block;
  }
  void free(void* block, std::size_t) noexcept override { ::operator delete(block, std::align_val_t(kAlignment)); }
};

}  // namespace

Memory& host_memory() {
  static HostMemory memory;
  return memory;
}

Workspace::~Workspace() {
  for (const Block& block : blocks_) memory_.free(block.data, block.num_bytes);
}

TensorView Workspace::take(DType dtype, std::initializer_list<std::int64_t> shape) {
  std::size_t num_bytes = size_of(dtype);
  for (const std::int64_t size : shape) num_bytes *= static_cast<std::size_t>(size);
  num_bytes = std::max((num_bytes + kAlignment - 1) / kAlignment * kAlignment, kAlignment);

  // Blocks that are too small for this one are passed over until the scope ends.
  while (block_ < blocks_.size() && blocks_[block_].num_bytes - offset_ < num_bytes) {
    ++block_;
    offset_ = 0;
  }
  if (block_ == blocks_.size()) {
    const std::size_t block_bytes = std::max(num_bytes, kSmallestBlock);
    blocks_.push_back({static_cast<std::byte*>(memory_.allocate(block_bytes)), block_bytes});
    offset_ = 0;
  }
  std::byte* data = blocks_[block_].data + offset_;
  offset_ += num_bytes;
  in_use_ += num_bytes;
  peak_bytes_ = std::max(peak_bytes_, in_use_);
  return TensorView(data, dtype, shape);
}

void Workspace::reserve(std::size_t num_bytes) {
  if (num_bytes <= held_bytes() && blocks_.size() == 1) return;
  release();
  if (num_bytes > 0) blocks_.push_back({static_cast<std::byte*>(memory_.allocate(num_bytes)), num_bytes});
}

std::size_t Workspace::held_bytes() const {
  std::size_t num_bytes = 0;
  for (const Block& block : blocks_) num_bytes += block.num_bytes;
  return num_bytes;
}

void Workspace::release() {
  if (in_use_ != 0) throw Error(ErrorCode::kInternal, "workspace: released while in use");
  for (const Block& block : blocks_) memory_.free(block.data, block.num_bytes);
  blocks_.clear();
  block_ = offset_ = 0;
}

Workspace::Scope::Scope(Workspace& workspace)
    : workspace_(workspace), block_(workspace.block_), offset_(workspace.offset_), in_use_(workspace.in_use_) {}

Workspace::Scope::~Scope() {
  workspace_.block_ = block_;
  workspace_.offset_ = offset_;
  workspace_.in_use_ = in_use_;
}

}  // namespace treble
