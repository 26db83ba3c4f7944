#pragma once

#include "cpu/tile.h"
#include "ops/ops.h"

namespace treble::cpu {

/// Tokens solved together. Longer chunks do more work inside a chunk, shorter ones visit the state more often.
constexpr std::int64_t kChunkSize = 64;

/// Value heads of one key head in one sequence.
struct DeltaRuleTask {
  std::int64_t sequence;
  std::int64_t begin, end;  // its tokens
  std::int64_t key_head;
  std::int64_t first_value_head, num_value_heads;
};

/// What a task keeps in the second-level cache.
struct DeltaRuleTiles {
  Tile keys;             // [2 chunk_size, key_head_dim], queries after the keys
  Tile keys_transposed;  // [key_head_dim, chunk_size]
  Tile key_key;          // [chunk_size, chunk_size], lower triangle; as are the next three
  Tile query_key;
  Tile solve;
  Tile mix;
  Tile reads;   // [2 chunk_size, value_head_dim]
  Tile states;  // [num_value_heads * key_head_dim, value_head_dim]
  std::int64_t num_floats;

  DeltaRuleTiles(TileArena& arena, std::int64_t key_head_dim, std::int64_t value_head_dim, std::int64_t num_value_heads)
      : keys(arena.take(2 * kChunkSize, key_head_dim)),
        keys_transposed(arena.take(key_head_dim, kChunkSize)),
        key_key(arena.take(kChunkSize, kChunkSize)),
        query_key(arena.take(kChunkSize, kChunkSize)),
        solve(arena.take(kChunkSize, kChunkSize)),
        mix(arena.take(kChunkSize, kChunkSize)),
        reads(arena.take(2 * kChunkSize, value_head_dim)),
        states(arena.take(num_value_heads * round_up(key_head_dim, kTileRows), value_head_dim)),
        num_floats(arena.num_floats()) {}
};

}  // namespace treble::cpu
