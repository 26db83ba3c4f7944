#include "tensor/workspace.h"

#include <doctest/doctest.h>
#include <treble/error.h>

#include <cstdint>
#include <cstring>

namespace treble {
namespace {

/// Host memory that counts, and that can be used up.
class CountingMemory final : public Memory {
 public:
  void* allocate(std::size_t num_bytes) override {
    if (num_bytes > left_bytes) throw Error(ErrorCode::kDevice, "test: used up");
    ++allocations;
    in_use_bytes += num_bytes;
    left_bytes -= num_bytes;
    return host_memory().allocate(num_bytes);
  }
  void free(void* block, std::size_t num_bytes) noexcept override {
    in_use_bytes -= num_bytes;
    left_bytes += num_bytes;
    host_memory().free(block, num_bytes);
  }

  int allocations = 0;
  std::size_t in_use_bytes = 0;
  std::size_t left_bytes = std::size_t{1} << 30;
};

constexpr std::int64_t kMiB = 1 << 20;

}  // namespace

TEST_CASE("host_memory: blocks are aligned to 64 bytes, also those of an odd size") {
  for (const std::size_t num_bytes : {std::size_t{1}, std::size_t{63}, std::size_t{1000}}) {
    void* block = host_memory().allocate(num_bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(block) % 64 == 0);
    std::memset(block, 1, num_bytes);
    host_memory().free(block, num_bytes);
  }
}

TEST_CASE("workspace: tensors do not share memory and are aligned") {
  CountingMemory memory;
  Workspace workspace(memory);
  const TensorView a = workspace.take(DType::kI8, {3});
  const TensorView b = workspace.take(DType::kF32, {5, 7});
  const TensorView c = workspace.take(DType::kBF16, {1});
  for (const TensorView& view : {a, b, c}) CHECK(reinterpret_cast<std::uintptr_t>(view.data()) % 64 == 0);
  std::memset(a.data(), 1, a.num_bytes());
  std::memset(b.data(), 2, b.num_bytes());
  std::memset(c.data(), 3, c.num_bytes());
  CHECK(a.as<std::int8_t>()[2] == 1);
  CHECK(static_cast<const char*>(b.data())[b.num_bytes() - 1] == 2);
  CHECK(memory.allocations == 1);
}

TEST_CASE("workspace: a tensor of no elements has an address") {
  CountingMemory memory;
  Workspace workspace(memory);
  const TensorView empty = workspace.take(DType::kF32, {0, 8});
  CHECK(empty);
  CHECK(empty.num_elements() == 0);
  CHECK(workspace.take(DType::kF32, {1}).data() != empty.data());
}

TEST_CASE("workspace: what a scope took is taken again by the next") {
  CountingMemory memory;
  Workspace workspace(memory);
  const TensorView kept = workspace.take(DType::kF32, {16});
  void* first = nullptr;
  {
    const Workspace::Scope scope(workspace);
    first = workspace.take(DType::kF32, {16}).data();
  }
  CHECK(first != kept.data());
  {
    const Workspace::Scope scope(workspace);
    CHECK(workspace.take(DType::kF32, {16}).data() == first);
  }
}

TEST_CASE("workspace: scopes nest") {
  CountingMemory memory;
  Workspace workspace(memory);
  const Workspace::Scope outer(workspace);
  const TensorView a = workspace.take(DType::kF32, {16});
  void* b = nullptr;
  {
    const Workspace::Scope inner(workspace);
    b = workspace.take(DType::kF32, {16}).data();
  }
  const TensorView c = workspace.take(DType::kF32, {16});
  CHECK(c.data() == b);
  CHECK(c.data() != a.data());
}

TEST_CASE("workspace: a pass that has run once allocates nothing more") {
  CountingMemory memory;
  Workspace workspace(memory);
  const auto pass = [&] {
    const Workspace::Scope scope(workspace);
    workspace.take(DType::kI8, {10 * kMiB});
    for (int layer = 0; layer < 4; ++layer) {
      const Workspace::Scope inner(workspace);
      workspace.take(DType::kI8, {40 * kMiB});
      workspace.take(DType::kI8, {3 * kMiB});
    }
  };
  pass();
  const int allocations = memory.allocations;
  pass();
  CHECK(memory.allocations == allocations);
}

TEST_CASE("workspace: a tensor that does not fit the block in use goes to another, and the first stays as it is") {
  CountingMemory memory;
  Workspace workspace(memory);
  const TensorView small = workspace.take(DType::kI8, {10 * kMiB});
  std::memset(small.data(), 7, small.num_bytes());
  const TensorView big = workspace.take(DType::kI8, {20 * kMiB});
  std::memset(big.data(), 9, big.num_bytes());
  CHECK(small.as<std::int8_t>()[10 * kMiB - 1] == 7);
  CHECK(memory.allocations == 2);
}

TEST_CASE("workspace: the peak is the most that was in use at once") {
  CountingMemory memory;
  Workspace workspace(memory);
  workspace.take(DType::kI8, {64});
  CHECK(workspace.peak_bytes() == 64);
  for (int round = 0; round < 3; ++round) {
    const Workspace::Scope scope(workspace);
    workspace.take(DType::kI8, {100});  // rounded up to 128
    CHECK(workspace.peak_bytes() == 192);
  }
  workspace.take(DType::kI8, {64});
  CHECK(workspace.peak_bytes() == 192);
}

TEST_CASE("workspace: release gives everything back, and is refused while something is in use") {
  CountingMemory memory;
  Workspace workspace(memory);
  {
    const Workspace::Scope scope(workspace);
    workspace.take(DType::kF32, {100});
    CHECK_THROWS_AS(workspace.release(), Error);
  }
  CHECK(memory.in_use_bytes > 0);
  workspace.release();
  CHECK(memory.in_use_bytes == 0);
  CHECK(workspace.take(DType::kF32, {100}));
}

TEST_CASE("workspace: its end gives everything back") {
  CountingMemory memory;
  {
    Workspace workspace(memory);
    workspace.take(DType::kI8, {40 * kMiB});
    workspace.take(DType::kI8, {40 * kMiB});
  }
  CHECK(memory.in_use_bytes == 0);
}

TEST_CASE("workspace: after memory ran out inside a scope, smaller passes still run") {
  CountingMemory memory;
  memory.left_bytes = 32 * kMiB;
  Workspace workspace(memory);
  try {
    const Workspace::Scope scope(workspace);
    workspace.take(DType::kI8, {8 * kMiB});
    workspace.take(DType::kI8, {64 * kMiB});
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kDevice);
  }
  const Workspace::Scope scope(workspace);
  CHECK(workspace.take(DType::kI8, {8 * kMiB}));
  CHECK(memory.allocations == 1);
}

TEST_CASE("workspace: what was reserved serves every pass that fits, from one block") {
  CountingMemory memory;
  Workspace workspace(memory);
  workspace.reserve(3 * kMiB);
  CHECK(memory.allocations == 1);
  CHECK(workspace.held_bytes() == 3 * kMiB);
  for (const std::int64_t first : {1, 2}) {
    const Workspace::Scope scope(workspace);
    workspace.take(DType::kI8, {first * kMiB});
    workspace.take(DType::kI8, {(3 - first) * kMiB});
  }
  CHECK(memory.allocations == 1);
  workspace.reserve(2 * kMiB);
  CHECK(memory.allocations == 1);
  workspace.reserve(4 * kMiB);
  CHECK(workspace.held_bytes() == 4 * kMiB);
  CHECK(memory.in_use_bytes == 4 * kMiB);
}

}  // namespace treble
