#include "cuda/few_queries_schedule.h"

#include <algorithm>

namespace treble::cuda {
namespace {

/// Keys of a tile. Many queries fill the GPU without ranges, and their parts would take much memory.
std::int32_t keys_of_range(std::int32_t num_queries, std::int32_t num_keys) {
  constexpr std::int32_t kManyQueries = 256;
  if (num_queries > kManyQueries) return num_keys;
  const std::int32_t keys = (num_keys + kFewQueriesMostRanges - 1) / kFewQueriesMostRanges;
  return (keys + kFewQueriesKeysPerStep - 1) / kFewQueriesKeysPerStep * kFewQueriesKeysPerStep;
}

}  // namespace

FewQueriesPlan plan_few_queries(std::span<const std::int32_t> cu_seqlens_q,
                                std::span<const std::int32_t> cu_seqlens_k) {
  FewQueriesPlan plan;
  for (std::size_t n = 0; n + 1 < cu_seqlens_q.size(); ++n) {
    const std::int32_t query_end = cu_seqlens_q[n + 1], key_end = cu_seqlens_k[n + 1];
    const std::int32_t range = keys_of_range(query_end - cu_seqlens_q[n], key_end - cu_seqlens_k[n]);
    for (std::int32_t query = cu_seqlens_q[n]; query < query_end; query += kFewQueriesPerTile) {
      const std::int32_t num_queries = std::min(kFewQueriesPerTile, query_end - query);
      FewQueriesGroup group{query, num_queries, static_cast<std::int32_t>(plan.tiles.size()), 0};
      for (std::int32_t key = cu_seqlens_k[n]; key < key_end; key += range, ++group.num_tiles)
        plan.tiles.push_back({query, num_queries, key, std::min(range, key_end - key)});
      plan.groups.push_back(group);
    }
  }
  return plan;
}

}  // namespace treble::cuda
