#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/parallel.h"
#include "tensor/workspace.h"

namespace treble::cpu {

constexpr std::int64_t round_up(std::int64_t x, std::int64_t multiple) {
  return (x + multiple - 1) / multiple * multiple;
}

constexpr std::int64_t kTileColumns = 32;  // two of the widest vectors
constexpr std::int64_t kTileRows = 4;

/// A small row-major fp32 matrix in scratch memory. Rows are aligned; columns may be read and written up to the next
/// multiple of kTileColumns, rows up to the next multiple of kTileRows.
struct Tile {
  float* data = nullptr;
  std::int64_t stride = 0;  // in elements

  float* row(std::int64_t i) const { return data + i * stride; }
  /// The same tile without its first rows.
  Tile below(std::int64_t num_rows) const { return {row(num_rows), stride}; }
};

/// Hands out the tiles of one worker's scratch memory; over no memory at all it only counts what they need.
class TileArena {
 public:
  explicit TileArena(float* memory = nullptr) : memory_(memory) {}

  Tile take(std::int64_t num_rows, std::int64_t num_columns) {
    // An odd number of cache lines a row: the rows of one column then spread over all sets of the cache.
    const std::int64_t stride = round_up(num_columns, kTileColumns) + kTileColumns / 2;
    const Tile tile = {memory_ ? memory_ + num_floats_ : nullptr, stride};
    num_floats_ += round_up(num_rows, kTileRows) * stride;
    return tile;
  }
  std::int64_t num_floats() const { return num_floats_; }

 private:
  float* memory_;
  std::int64_t num_floats_ = 0;
};

/// Calls body(task, scratch) for every task in [0, count) on the calling thread's threads. Tasks start in order, and
/// `scratch` is a worker's own: `scratch_floats` elements, aligned, with whatever an earlier task left there.
template <typename Body>
void for_each_task(Workspace& workspace, std::int64_t count, std::int64_t scratch_floats, const Body& body) {
  const Workspace::Scope scope(workspace);
  const std::int64_t workers = std::min<std::int64_t>(count, available_threads());
  const std::int64_t stride = round_up(scratch_floats, 16);  // whole cache lines
  float* scratch = workspace.take(DType::kF32, {workers, stride}).as<float>();
  std::atomic<std::int64_t> next = 0;
  parallel_for(workers, [&](std::int64_t worker) {
    for (std::int64_t task = next++; task < count; task = next++) body(task, scratch + worker * stride);
  });
}

}  // namespace treble::cpu
