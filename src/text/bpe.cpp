#include "text/bpe.h"

#include <treble/error.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>

namespace treble {
namespace {

constexpr std::uint32_t kNoRank = MergeTable::kNoRank;

// Up to here a scan for the lowest rank is no slower than a heap and takes no memory. Chinese, Japanese and Thai prose
// goes equally fast with 24; bench/tokenizer_bench.
constexpr std::size_t kMaxShortBytes = 64;

std::uint64_t pack(std::uint32_t high, std::uint32_t low) {
  return std::uint64_t{high} << 32 | low;
}

std::size_t byte_of(char c) {
  return static_cast<unsigned char>(c);
}

}  // namespace

Bpe::Bpe(const Vocabulary& vocabulary, const MergeTable& merges)
    : vocabulary_(vocabulary),
      merges_(merges),
      whole_(std::make_unique<std::atomic<Whole>[]>(static_cast<std::size_t>(vocabulary.end_id()))) {
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const auto c = static_cast<char>(byte);
    byte_ids_[byte] = vocabulary.find({&c, 1});
  }
  byte_steps_.reserve(256 * 256);
  for (const std::int32_t left : byte_ids_) {
    for (const std::int32_t right : byte_ids_) byte_steps_.push_back(step(left, right));
  }
}

void Bpe::encode(std::string_view piece, std::vector<std::int32_t>& ids) const {
  const std::int32_t id = vocabulary_.find(piece);
  std::atomic<Whole>* whole = id < 0 ? nullptr : &whole_[static_cast<std::size_t>(id)];
  const Whole known = whole ? whole->load(std::memory_order_relaxed) : Whole::kNo;
  if (known == Whole::kYes) {
    ids.push_back(id);
    return;
  }
  const std::size_t before = ids.size();
  piece.size() <= kMaxShortBytes ? merge_short(piece, ids) : merge_long(piece, ids);
  if (known == Whole::kUnknown) {
    whole->store(ids.size() == before + 1 ? Whole::kYes : Whole::kNo, std::memory_order_relaxed);
  }
}

Bpe::Step Bpe::step(std::int32_t left, std::int32_t right) const {
  const MergeTable::Rule& rule = merges_.find(left, right);
  return {rule.rank, rule.merged};
}

Bpe::Step Bpe::byte_step(char left, char right) const {
  return byte_steps_[byte_of(left) << 8 | byte_of(right)];
}

void Bpe::merge_short(std::string_view piece, std::vector<std::int32_t>& ids) const {
  // ranks[i] and merged[i]: the step that joins symbols[i] and symbols[i + 1].
  std::array<std::int32_t, kMaxShortBytes> symbols;
  std::array<std::uint32_t, kMaxShortBytes> ranks;
  std::array<std::int32_t, kMaxShortBytes> merged;
  std::size_t length = piece.size();
  const auto set_step = [&](std::size_t i, Step step) {
    ranks[i] = step.rank;
    merged[i] = step.merged;
  };
  for (std::size_t i = 0; i < length; ++i) symbols[i] = byte_ids_[byte_of(piece[i])];
  for (std::size_t i = 0; i + 1 < length; ++i) set_step(i, byte_step(piece[i], piece[i + 1]));
  while (length > 1) {
    const auto last = ranks.begin() + (length - 1);
    const auto lowest = std::min_element(ranks.begin(), last);
    if (*lowest == kNoRank) break;
    const std::size_t i = lowest - ranks.begin();
    symbols[i] = merged[i];
    std::copy(symbols.begin() + i + 2, symbols.begin() + length, symbols.begin() + i + 1);
    std::copy(ranks.begin() + i + 1, last, ranks.begin() + i);
    std::copy(merged.begin() + i + 1, merged.begin() + (length - 1), merged.begin() + i);
    --length;
    if (i > 0) set_step(i - 1, step(symbols[i - 1], symbols[i]));
    if (i + 1 < length) set_step(i, step(symbols[i], symbols[i + 1]));
  }
  ids.insert(ids.end(), symbols.begin(), symbols.begin() + length);
}

void Bpe::merge_long(std::string_view piece, std::vector<std::int32_t>& ids) const {
  // A linked list of symbols in the order of the piece, and a heap of the rules that apply: (rank, position).
  // Entries that a merge has made stale stay in the heap: one counts only while its position still has that rank.
  constexpr std::uint32_t kEnd = std::numeric_limits<std::uint32_t>::max();
  struct Symbol {
    std::int32_t id;
    Step step;  // that joins it and the next; of rank kNoRank also once it was joined to the one before
    std::uint32_t previous;
    std::uint32_t next;
  };
  constexpr Step kNoStep = {kNoRank, -1};
  if (piece.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    throw Error(ErrorCode::kTooLong, "text: one word of " + std::to_string(piece.size()) +
                                         " bytes, at most 2147483647 are encoded; shorten the text");
  }
  const auto length = static_cast<std::uint32_t>(piece.size());
  std::vector<Symbol> symbols(length);
  std::vector<std::uint64_t> heap;
  heap.reserve(length);
  for (std::uint32_t i = 0; i < length; ++i) {
    const bool is_last = i + 1 == length;
    const Step step = is_last ? kNoStep : byte_step(piece[i], piece[i + 1]);
    symbols[i] = {byte_ids_[byte_of(piece[i])], step, i == 0 ? kEnd : i - 1, is_last ? kEnd : i + 1};
    if (step.rank != kNoRank) heap.push_back(pack(step.rank, i));
  }
  const auto renew_step = [&](std::uint32_t i) {
    Symbol& symbol = symbols[i];
    symbol.step = symbol.next == kEnd ? kNoStep : step(symbol.id, symbols[symbol.next].id);
    if (symbol.step.rank == kNoRank) return;
    heap.push_back(pack(symbol.step.rank, i));
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  while (!heap.empty()) {
    const std::uint64_t lowest = heap.front();
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    heap.pop_back();
    const auto i = static_cast<std::uint32_t>(lowest);
    Symbol& symbol = symbols[i];
    if (symbol.step.rank != lowest >> 32) continue;
    Symbol& absorbed = symbols[symbol.next];
    absorbed.step = kNoStep;
    symbol.id = symbol.step.merged;
    symbol.next = absorbed.next;
    if (symbol.next != kEnd) symbols[symbol.next].previous = i;
    renew_step(i);
    if (symbol.previous != kEnd) renew_step(symbol.previous);
  }
  for (std::uint32_t i = 0; i != kEnd; i = symbols[i].next) ids.push_back(symbols[i].id);
}

}  // namespace treble
