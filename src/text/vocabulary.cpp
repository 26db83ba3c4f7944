#include "text/vocabulary.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

namespace treble {
namespace {

/// 64 well-mixed bits. Tokens come from a trusted file: no defence against chosen collisions is needed.
std::uint64_t hash_bytes(std::string_view bytes) {
  constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15u;
  std::uint64_t hash = bytes.size() * kMultiplier;
  const auto mix = [&](std::uint64_t word) {
    hash = (hash ^ word) * kMultiplier;
    hash ^= hash >> 32;
  };
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= sizeof(std::uint64_t); at += sizeof(std::uint64_t), left -= sizeof(std::uint64_t)) {
    std::uint64_t word;
    std::memcpy(&word, at, sizeof(word));
    mix(word);
  }
  std::uint64_t word = 0;
  std::memcpy(&word, at, left);
  mix(word);
  return hash * kMultiplier;
}

std::uint32_t tag_of(std::uint64_t hash) {
  return static_cast<std::uint32_t>(hash >> 32);
}

}  // namespace

Vocabulary::Vocabulary(std::size_t num_tokens) : slots_(std::bit_ceil(2 * num_tokens + 1)) {}

bool Vocabulary::add(std::string_view bytes, std::int32_t id) {
  assert(!bytes.empty() && id >= 0 && id <= kMaxId);
  const std::uint64_t hash = hash_bytes(bytes);
  Slot& slot = const_cast<Slot&>(slot_of(bytes, hash));
  if (slot.id >= 0 || !this->bytes(id).empty()) return false;
  const Extent extent = {static_cast<std::uint32_t>(arena_.size()), static_cast<std::uint32_t>(bytes.size())};
  if (id >= end_id()) extents_.resize(static_cast<std::size_t>(id) + 1);
  extents_[static_cast<std::size_t>(id)] = extent;
  arena_ += bytes;
  slot = {tag_of(hash), id, extent};
  max_bytes_ = std::max(max_bytes_, bytes.size());
  return true;
}

std::int32_t Vocabulary::find(std::string_view bytes) const {
  if (bytes.empty() || bytes.size() > max_bytes_) return -1;
  return slot_of(bytes, hash_bytes(bytes)).id;
}

std::string_view Vocabulary::bytes(std::int32_t id) const {
  if (id < 0 || id >= end_id()) return {};
  return bytes_of(extents_[static_cast<std::size_t>(id)]);
}

/// The slot that holds the token, or the free one where it belongs.
const Vocabulary::Slot& Vocabulary::slot_of(std::string_view bytes, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = hash & mask;; i = (i + 1) & mask) {
    const Slot& slot = slots_[i];
    if (slot.id < 0 || (slot.tag == tag_of(hash) && bytes_of(slot.extent) == bytes)) return slot;
  }
}

}  // namespace treble
