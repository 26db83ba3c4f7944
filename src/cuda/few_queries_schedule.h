#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace treble::cuda {

/// Queries and keys of a block of attention_few_queries.cu: rows of the batch.
struct FewQueriesTile {
  std::int32_t first_query, num_queries;
  std::int32_t first_key, num_keys;
};

/// Tiles of the same queries, one for each range of keys.
struct FewQueriesGroup {
  std::int32_t first_query, num_queries;
  std::int32_t first_tile, num_tiles;
};

struct FewQueriesPlan {
  std::vector<FewQueriesTile> tiles;
  std::vector<FewQueriesGroup> groups;

  /// Whether results are put together from ranges of keys.
  bool has_parts() const { return tiles.size() > groups.size(); }
};

inline constexpr std::int32_t kFewQueriesPerTile = 16;
inline constexpr std::int32_t kFewQueriesMostRanges = 32;
inline constexpr std::int32_t kFewQueriesKeysPerStep = 64;

/// Ranges start at the sequence's first key and their length follows from its length, so that digits do not depend on
/// what else is packed.
/// @param cu_seqlens_q, cu_seqlens_k  [N + 1] borders of the sequences' queries and keys
FewQueriesPlan plan_few_queries(std::span<const std::int32_t> cu_seqlens_q, std::span<const std::int32_t> cu_seqlens_k);

}  // namespace treble::cuda
