#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace treble::cuda {

/// Neighbouring queries of one sequence, and the keys they read.
struct AttentionTile {
  std::int32_t first_query, num_queries;  // rows of the batch
  std::int32_t first_key;                 // row of the batch
  std::int32_t num_keys;                  // that the last query reads; each query before it one less, if causal
};

/// Tiles of the queries of a batch, longest first, so that the last one to start is a short one. Tiles of equal length
/// stay in the order of the batch. Their borders depend on their own sequence alone.
/// @param cu_seqlens_q, cu_seqlens_k  [N + 1] borders of the sequences' queries and keys; queries are the last rows
std::vector<AttentionTile> attention_tiles(std::span<const std::int32_t> cu_seqlens_q,
                                           std::span<const std::int32_t> cu_seqlens_k, bool causal,
                                           std::int32_t queries_per_tile);

/// The tiles of all heads dealt to blocks that run side by side to the end. Item i is head i % num_heads of tile
/// i / num_heads: the longest go first, each to the block with the least to do so far, so that heads which share keys
/// read them at about the same time.
/// @param keys_per_step  keys that a block takes at once: what a tile costs is counted in these
/// @return  [num_blocks + 1] borders of the blocks' items, counted from the array's start, then the items
std::vector<std::int32_t> deal_attention_tiles(std::span<const AttentionTile> tiles, std::int32_t num_heads,
                                               std::int32_t num_blocks, std::int32_t keys_per_step);

/// How attention_wgmma_sm90 divides a batch.
struct AttentionPlan {
  std::int32_t queries_per_tile, num_blocks;
  std::vector<AttentionTile> tiles;
  std::vector<std::int32_t> items;  // as deal_attention_tiles returns them
};

/// Tiles of 128 queries, or of 64 where a block for each of these is no more than the device runs at once.
/// @param num_sms  multiprocessors, each of which runs one block
AttentionPlan plan_attention_sm90(std::span<const std::int32_t> cu_seqlens_q,
                                  std::span<const std::int32_t> cu_seqlens_k, bool causal, std::int32_t num_heads,
                                  std::int32_t num_sms);

}  // namespace treble::cuda
