#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace treble {

/// An allocator for large arrays that are written from front to back right after they are made: elements are not set to
/// zero first, and Linux is asked for huge pages. Faulting in a 12-megapixel picture by 4 KiB takes 22 of the 78 ms of
/// decoding it (bench/LOG.md).
template <typename T>
class UninitialisedAllocator {
 public:
  using value_type = T;

  UninitialisedAllocator() = default;
  template <typename U>
  UninitialisedAllocator(const UninitialisedAllocator<U>&) {}

  T* allocate(std::size_t count) {
    if (count > (static_cast<std::size_t>(-1) - kHugePage) / sizeof(T)) throw std::bad_alloc();
    const std::size_t num_bytes = count * sizeof(T);
    const bool is_large = num_bytes >= 2 * kHugePage;
    void* memory = ::operator new(num_bytes, std::align_val_t(is_large ? kHugePage : kCacheLine));
    // A wish: where the system has no huge pages, this fails and nothing is lost.
    if (is_large) static_cast<void>(::madvise(memory, num_bytes, MADV_HUGEPAGE));
    return static_cast<T*>(memory);
  }

  void deallocate(T* memory, std::size_t count) {
    const bool is_large = count * sizeof(T) >= 2 * kHugePage;
    ::operator delete(memory, std::align_val_t(is_large ? kHugePage : kCacheLine));
  }

  /// What std::vector::resize() calls for a new element: nothing is written.
  template <typename U>
  void construct(U* element) {
    ::new (static_cast<void*>(element)) U;
  }
  template <typename U, typename... Arguments>
  void construct(U* element, Arguments&&... arguments) {
    ::new (static_cast<void*>(element)) U(std::forward<Arguments>(arguments)...);
  }

  bool operator==(const UninitialisedAllocator&) const { return true; }

 private:
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;
  static constexpr std::size_t kCacheLine = 64;
};

}  // namespace treble
