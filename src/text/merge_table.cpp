#include "text/merge_table.h"

#include <bit>
#include <cassert>

namespace treble {
namespace {

std::uint64_t pair_of(std::int32_t left, std::int32_t right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

std::size_t hash_pair(std::uint64_t pair) {
  const std::uint64_t mixed = pair * 0x9E3779B97F4A7C15u;
  return mixed ^ mixed >> 32;
}

}  // namespace

MergeTable::MergeTable(std::size_t num_rules) : slots_(std::bit_ceil(2 * num_rules + 1)) {}

bool MergeTable::add(std::int32_t left, std::int32_t right, std::int32_t merged) {
  assert(2 * (std::size_t{size_} + 1) <= slots_.size());
  Rule& slot = const_cast<Rule&>(find(left, right));
  if (slot.rank != kNoRank) return false;
  slot = {pair_of(left, right), size_++, merged};
  return true;
}

const MergeTable::Rule& MergeTable::find(std::int32_t left, std::int32_t right) const {
  const std::uint64_t pair = pair_of(left, right);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = hash_pair(pair) & mask;; i = (i + 1) & mask) {
    if (slots_[i].pair == pair || slots_[i].pair == kNoPair) return slots_[i];
  }
}

}  // namespace treble
