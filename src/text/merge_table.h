#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace treble {

/// The rules of byte-pair encoding: two neighbouring tokens become one, those of lower rank first.
class MergeTable {
 public:
  static constexpr std::uint32_t kNoRank = std::numeric_limits<std::uint32_t>::max();

  struct Rule {
    std::uint64_t pair = kNoPair;
    std::uint32_t rank = kNoRank;
    std::int32_t merged = -1;  ///< id of the token that the pair becomes
  };

  MergeTable() : MergeTable(0) {}
  /// @param num_rules  how many will be added, at most
  explicit MergeTable(std::size_t num_rules);

  /// The new rule's rank is the number of rules before it. Ids are not negative.
  /// @return false, and nothing changes, if the pair has a rule
  bool add(std::int32_t left, std::int32_t right, std::int32_t merged);

  /// The pair's rule; one of rank kNoRank if it has none.
  const Rule& find(std::int32_t left, std::int32_t right) const;

  /// How many rules there are.
  std::uint32_t size() const { return size_; }

 private:
  static constexpr std::uint64_t kNoPair = std::numeric_limits<std::uint64_t>::max();

  std::vector<Rule> slots_;  // open addressing; a power of two, at most half full
  std::uint32_t size_ = 0;
};

}  // namespace treble
