#include "base/lru_cache.h"

#include <doctest/doctest.h>

namespace treble {
namespace {

std::shared_ptr<const int> number(int value) {
  return std::make_shared<const int>(value);
}

TEST_CASE("lru_cache: gives back what was kept, by the whole key") {
  LruCache<int> cache(100);
  cache.insert(std::string("a\0b", 3), number(1), 10);
  cache.insert(std::string("a\0c", 3), number(2), 10);
  CHECK(*cache.find(std::string_view("a\0b", 3)) == 1);
  CHECK(*cache.find(std::string_view("a\0c", 3)) == 2);
  CHECK(cache.find("a") == nullptr);
  CHECK(cache.used_bytes() == 20);
}

TEST_CASE("lru_cache: the value not asked for longest makes room, and lives on with its holder") {
  LruCache<int> cache(30);
  for (const char* key : {"a", "b", "c"}) cache.insert(key, number(key[0]), 10);
  const auto held = cache.find("b");
  CHECK(cache.find("a"));
  cache.insert("d", number('d'), 20);
  CHECK(cache.find("c") == nullptr);
  CHECK(cache.find("b") == nullptr);
  CHECK(cache.find("a"));
  CHECK(cache.find("d"));
  CHECK(*held == 'b');
  CHECK(cache.used_bytes() == 30);
}

TEST_CASE("lru_cache: a value larger than the cache is not kept and pushes nothing out") {
  LruCache<int> cache(30);
  cache.insert("a", number(1), 10);
  cache.insert("b", number(2), 31);
  CHECK(cache.find("a"));
  CHECK(cache.find("b") == nullptr);
}

TEST_CASE("lru_cache: a key kept again has the new value and size") {
  LruCache<int> cache(30);
  cache.insert("a", number(1), 30);
  cache.insert("a", number(2), 5);
  CHECK(*cache.find("a") == 2);
  CHECK(cache.used_bytes() == 5);
}

}  // namespace
}  // namespace treble
