#include "cuda/attention_schedule.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <utility>

namespace treble::cuda {

std::vector<AttentionTile> attention_tiles(std::span<const std::int32_t> cu_seqlens_q,
                                           std::span<const std::int32_t> cu_seqlens_k, bool causal,
                                           std::int32_t queries_per_tile) {
  std::vector<AttentionTile> tiles;
  for (std::size_t n = 0; n + 1 < cu_seqlens_q.size(); ++n) {
    const std::int32_t end = cu_seqlens_q[n + 1];
    for (std::int32_t query = cu_seqlens_q[n]; query < end; query += queries_per_tile) {
      const std::int32_t num_queries = std::min(queries_per_tile, end - query);
      const std::int32_t rows_after = end - query - num_queries;
      tiles.push_back(
          {query, num_queries, cu_seqlens_k[n], cu_seqlens_k[n + 1] - cu_seqlens_k[n] - (causal ? rows_after : 0)});
    }
  }
  std::stable_sort(tiles.begin(), tiles.end(),
                   [](const AttentionTile& a, const AttentionTile& b) { return a.num_keys > b.num_keys; });
  return tiles;
}

std::vector<std::int32_t> deal_attention_tiles(std::span<const AttentionTile> tiles, std::int32_t num_heads,
                                               std::int32_t num_blocks, std::int32_t keys_per_step) {
  constexpr std::int64_t kStepsAround = 5;  // what starting and ending a tile costs
  using Load = std::pair<std::int64_t, std::int32_t>;
  std::vector<Load> loads;
  for (std::int32_t block = 0; block < num_blocks; ++block) loads.emplace_back(0, block);
  std::priority_queue<Load, std::vector<Load>, std::greater<>> least(std::greater<>(), std::move(loads));
  std::vector<std::int32_t> block_of(tiles.size() * static_cast<std::size_t>(num_heads));
  std::vector<std::int32_t> result(static_cast<std::size_t>(num_blocks) + 1, 0);
  for (std::size_t item = 0; item < block_of.size(); ++item) {
    auto [load, block] = least.top();
    least.pop();
    const std::int32_t num_keys = tiles[item / static_cast<std::size_t>(num_heads)].num_keys;
    least.emplace(load + (num_keys + keys_per_step - 1) / keys_per_step + kStepsAround, block);
    block_of[item] = block;
    ++result[static_cast<std::size_t>(block) + 1];
  }
  result[0] = num_blocks + 1;
  for (std::size_t block = 0; block < static_cast<std::size_t>(num_blocks); ++block) result[block + 1] += result[block];
  std::vector<std::int32_t> next(result.begin(), result.end() - 1);
  result.resize(result.size() + block_of.size());
  for (std::size_t item = 0; item < block_of.size(); ++item)
    result[static_cast<std::size_t>(next[static_cast<std::size_t>(block_of[item])]++)] =
        static_cast<std::int32_t>(item);
  return result;
}

AttentionPlan plan_attention_sm90(std::span<const std::int32_t> cu_seqlens_q,
                                  std::span<const std::int32_t> cu_seqlens_k, bool causal, std::int32_t num_heads,
                                  std::int32_t num_sms) {
  constexpr std::int32_t kKeysPerStep = 80;
  AttentionPlan plan{};
  std::int64_t num_items = 0;
  for (const std::int32_t queries : {64, 128}) {
    plan.queries_per_tile = queries;
    plan.tiles = attention_tiles(cu_seqlens_q, cu_seqlens_k, causal, queries);
    num_items = static_cast<std::int64_t>(plan.tiles.size()) * num_heads;
    if (num_items <= num_sms) break;
  }
  plan.num_blocks = static_cast<std::int32_t>(std::min<std::int64_t>(num_items, num_sms));
  plan.items = deal_attention_tiles(plan.tiles, num_heads, plan.num_blocks, kKeysPerStep);
  return plan;
}

}  // namespace treble::cuda
