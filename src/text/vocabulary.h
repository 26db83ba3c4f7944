#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace treble {

/// The base tokens: byte strings <-> ids. Ids may have gaps.
class Vocabulary {
 public:
  /// Ids beyond it are refused, so that a broken file cannot ask for absurd memory.
  static constexpr std::int32_t kMaxId = (1 << 24) - 1;

  Vocabulary() : Vocabulary(0) {}
  /// @param num_tokens  how many will be added, at most
  explicit Vocabulary(std::size_t num_tokens);

  /// @param bytes  not empty  @param id  0 to kMaxId
  /// @return false, and nothing changes, if the bytes or the id are taken
  bool add(std::string_view bytes, std::int32_t id);

  /// The token's id, or -1.
  std::int32_t find(std::string_view bytes) const;

  /// The token's bytes; empty if there is no such id.
  std::string_view bytes(std::int32_t id) const;

  /// One more than the largest id.
  std::int32_t end_id() const { return static_cast<std::int32_t>(extents_.size()); }

 private:
  // Where a token's bytes stand in arena_.
  struct Extent {
    std::uint32_t offset = 0;
    std::uint32_t num_bytes = 0;
  };
  // Of an open-addressing table. The tag, half of the hash, spares most comparisons; the extent, a look at extents_.
  struct Slot {
    std::uint32_t tag = 0;
    std::int32_t id = -1;
    Extent extent;
  };

  std::string_view bytes_of(Extent extent) const { return {arena_.data() + extent.offset, extent.num_bytes}; }
  const Slot& slot_of(std::string_view bytes, std::uint64_t hash) const;

  std::string arena_;
  std::vector<Extent> extents_;  // by id
  std::vector<Slot> slots_;      // a power of two, at most half full
  std::size_t max_bytes_ = 0;    // of a token
};

}  // namespace treble
