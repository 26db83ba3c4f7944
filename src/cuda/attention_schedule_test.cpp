#include "cuda/attention_schedule.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <vector>

using namespace treble::cuda;

namespace {

using Borders = std::vector<std::int32_t>;

/// Borders of sequences of these lengths.
Borders borders(const Borders& lengths) {
  Borders result{0};
  for (const std::int32_t length : lengths) result.push_back(result.back() + length);
  return result;
}

/// Steps of 80 keys of each block.
std::vector<std::int64_t> loads(const AttentionPlan& plan, std::int32_t num_heads) {
  std::vector<std::int64_t> result;
  for (std::int32_t block = 0; block < plan.num_blocks; ++block) {
    std::int64_t steps = 0;
    for (std::int32_t i = plan.items[block]; i < plan.items[block + 1]; ++i)
      steps += (plan.tiles[plan.items[i] / num_heads].num_keys + 79) / 80;
    result.push_back(steps);
  }
  return result;
}

}  // namespace

TEST_CASE("attention_tiles: a causal tile ends at the key of its last query, and the longest come first") {
  const std::vector<AttentionTile> tiles = attention_tiles(borders({100, 65}), borders({120, 65}), true, 64);
  REQUIRE(tiles.size() == 4);
  const auto expect = [&](std::size_t i, AttentionTile tile) {
    CAPTURE(i);
    CHECK(tiles[i].first_query == tile.first_query);
    CHECK(tiles[i].num_queries == tile.num_queries);
    CHECK(tiles[i].first_key == tile.first_key);
    CHECK(tiles[i].num_keys == tile.num_keys);
  };
  expect(0, {64, 36, 0, 120});
  expect(1, {0, 64, 0, 84});
  expect(2, {164, 1, 120, 65});
  expect(3, {100, 64, 120, 64});
}

TEST_CASE("attention_tiles: without a mask every tile reads all keys of its sequence") {
  for (const AttentionTile& tile : attention_tiles(borders({300}), borders({500}), false, 128))
    CHECK(tile.num_keys == 500);
}

TEST_CASE("attention_tiles: a sequence without queries has no tile") {
  CHECK(attention_tiles(borders({0, 3, 0}), borders({0, 3, 7}), true, 64).size() == 1);
  CHECK(attention_tiles(borders({0}), borders({0}), true, 64).empty());
}

TEST_CASE("plan_attention_sm90: every head of every tile is one item of one block") {
  constexpr std::int32_t kHeads = 6;
  for (const Borders& lengths : {Borders{1}, Borders{298}, Borders{2270}, Borders{5, 64, 301, 1, 700}}) {
    const Borders cu_seqlens = borders(lengths);
    const AttentionPlan plan = plan_attention_sm90(cu_seqlens, cu_seqlens, true, kHeads, 132);
    REQUIRE(plan.items[0] == plan.num_blocks + 1);
    REQUIRE(plan.items[plan.num_blocks] == static_cast<std::int32_t>(plan.items.size()));
    Borders items(plan.items.begin() + plan.num_blocks + 1, plan.items.end()), expected(plan.tiles.size() * kHeads);
    std::iota(expected.begin(), expected.end(), 0);
    std::sort(items.begin(), items.end());
    CHECK(items == expected);
  }
}

TEST_CASE("plan_attention_sm90: blocks of a long sequence have nearly equal work") {
  const Borders cu_seqlens = borders({2270});
  const AttentionPlan plan = plan_attention_sm90(cu_seqlens, cu_seqlens, true, 24, 132);
  CHECK(plan.num_blocks == 132);
  const std::vector<std::int64_t> steps = loads(plan, 24);
  const double mean = std::accumulate(steps.begin(), steps.end(), 0.0) / 132;
  CHECK(*std::max_element(steps.begin(), steps.end()) <= 1.1 * mean);
}

TEST_CASE("plan_attention_sm90: tiles are smaller where that lets more of the device work") {
  const Borders shorter = borders({298}), longer = borders({1502});
  CHECK(plan_attention_sm90(shorter, shorter, true, 24, 132).queries_per_tile == 64);
  CHECK(plan_attention_sm90(longer, longer, true, 24, 132).queries_per_tile == 128);
}
