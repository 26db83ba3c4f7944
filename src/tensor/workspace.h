#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "tensor/tensor_view.h"

namespace treble {

/// Where a backend's memory comes from.
class Memory {
 public:
  virtual ~Memory() = default;
  /// At least 64-byte aligned. @throws Error kDevice when there is not enough
  virtual void* allocate(std::size_t num_bytes) = 0;
  virtual void free(void* block, std::size_t num_bytes) noexcept = 0;
};

/// Ordinary memory of this machine.
Memory& host_memory();

/// Scratch memory in stack order: what was taken inside a Scope is given back at its end, and taken again by the
/// next, so a pass that has run once allocates nothing more. Not thread-safe: one per pass.
class Workspace {
 public:
  explicit Workspace(Memory& memory) : memory_(memory) {}
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  /// Uninitialised, contiguous. A tensor of no elements has a non-null address too.
  TensorView take(DType dtype, std::initializer_list<std::int64_t> shape);

  /// Takes memory for so many bytes at once, one block, so that tensors of no more bytes together need nothing else.
  /// Gives back what it had; nothing may be in use. @throws Error kDevice when there is not enough
  void reserve(std::size_t num_bytes);

  /// Bytes that it holds, in use or not.
  std::size_t held_bytes() const;
  /// The most bytes that were in use at once.
  std::size_t peak_bytes() const { return peak_bytes_; }
  /// Gives all memory back; nothing may be in use.
  void release();

  class Scope {
   public:
    explicit Scope(Workspace& workspace);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Workspace& workspace_;
    std::size_t block_, offset_, in_use_;
  };

 private:
  struct Block {
    std::byte* data;
    std::size_t num_bytes;
  };

  Memory& memory_;
  std::vector<Block> blocks_;
  std::size_t block_ = 0;   // the block that is being filled
  std::size_t offset_ = 0;  // bytes taken of it
  std::size_t in_use_ = 0;
  std::size_t peak_bytes_ = 0;
};

}  // namespace treble
