#pragma once

#include <algorithm>

#include "cpu/tile.h"
#include "ops/ops.h"

namespace treble::cpu {

/// Keys read at a time.
constexpr std::int64_t kKeyBlock = 96;

/// Neighbouring query rows of one sequence, for all query heads of one kv head: tile row i * group + h is row i, head
/// h.
struct AttentionTask {
  std::int64_t kv_head;
  std::int64_t first_query, num_queries;  // rows of the batch
  std::int64_t begin_key, end_key;  // rows of the batch; with `causal`, the last query reads up to the last of them
  std::int64_t part, num_parts;     // keys may be shared out over several tasks with the same queries
};

/// What a task keeps in the second-level cache.
struct AttentionTiles {
  Tile queries;  // [head_dim, tile_rows], transposed: scores then come out with a query in each lane
  Tile keys;     // [kKeyBlock, head_dim], and values once the keys are done with
  Tile scores;   // [kKeyBlock, tile_rows], and exp(score - maximum)
  Tile out;      // [tile_rows, head_dim], still to be divided by the sums
  Tile rows;     // [3, tile_rows]: per query the maximum so far, the sum of exponentials, the last block's rescaling
  std::int64_t num_floats;

  AttentionTiles(TileArena& arena, std::int64_t tile_rows, std::int64_t head_dim)
      : queries(arena.take(head_dim, tile_rows)),
        keys(arena.take(kKeyBlock, head_dim)),
        scores(arena.take(kKeyBlock, tile_rows)),
        out(arena.take(round_up(tile_rows, kTileColumns), head_dim)),
        rows(arena.take(3, tile_rows)),
        num_floats(arena.num_floats()) {}

  float* maximum() const { return rows.row(0); }
  float* sum() const { return rows.row(1); }
  float* rescale() const { return rows.row(2); }
};

}  // namespace treble::cpu
