#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace treble {

/// Values by key, as many as fit into a number of bytes; the one that was not asked for longest goes first. Keys are
/// compared byte by byte. Not thread-safe; values live on with whoever holds them.
template <typename Value>
class LruCache {
 public:
  explicit LruCache(std::size_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}

  /// nullptr if there is none.
  std::shared_ptr<const Value> find(std::string_view key) {
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return found->second->value;
  }

  /// Keeps a value that is held to take `num_bytes`, its key included. One larger than the cache is not kept.
  void insert(std::string key, std::shared_ptr<const Value> value, std::size_t num_bytes) {
    if (num_bytes > capacity_bytes_) return;
    if (const auto found = by_key_.find(key); found != by_key_.end()) erase(found->second);
    while (used_bytes_ + num_bytes > capacity_bytes_) erase(std::prev(entries_.end()));
    entries_.push_front({std::move(key), std::move(value), num_bytes});
    by_key_.emplace(entries_.front().key, entries_.begin());
    used_bytes_ += num_bytes;
  }

  std::size_t used_bytes() const { return used_bytes_; }

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const Value> value;
    std::size_t num_bytes;
  };
  using Place = typename std::list<Entry>::iterator;

  void erase(Place place) {
    used_bytes_ -= place->num_bytes;
    by_key_.erase(place->key);
    entries_.erase(place);
  }

  std::size_t capacity_bytes_;
  std::size_t used_bytes_ = 0;
  std::list<Entry> entries_;                            // the last one used first
  std::unordered_map<std::string_view, Place> by_key_;  // keys lie in the entries
};

}  // namespace treble
