#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "text/merge_table.h"
#include "text/vocabulary.h"

namespace treble {

/// Byte-pair encoding of single pieces: start from bytes, apply the rule of lowest rank, leftmost first, until none
/// applies.
class Bpe {
 public:
  /// @param vocabulary  has all 256 single bytes; outlives this
  /// @param merges      ids of the vocabulary; outlives this
  Bpe(const Vocabulary& vocabulary, const MergeTable& merges);

  /// Appends the piece's ids. Safe from many threads at once.
  /// @throws Error kTooLong if the piece has 2^31 bytes or more
  void encode(std::string_view piece, std::vector<std::int32_t>& ids) const;

 private:
  // What joining two symbols gives.
  struct Step {
    std::uint32_t rank;
    std::int32_t merged;
  };
  // What is known of "merging this token's bytes gives this token".
  enum class Whole : std::uint8_t { kUnknown, kYes, kNo };

  Step step(std::int32_t left, std::int32_t right) const;
  Step byte_step(char left, char right) const;
  void merge_short(std::string_view piece, std::vector<std::int32_t>& ids) const;
  void merge_long(std::string_view piece, std::vector<std::int32_t>& ids) const;

  const Vocabulary& vocabulary_;
  const MergeTable& merges_;
  std::array<std::int32_t, 256> byte_ids_;
  // The rules of neighbouring bytes, first << 8 | second: half of all look-ups, and what a script uses of it is small.
  std::vector<Step> byte_steps_;
  // Found out when a token is first met, 250,000 merges at load would take longer. Every thread finds the same, so no
  // order is needed.
  std::unique_ptr<std::atomic<Whole>[]> whole_;
};

}  // namespace treble
