#include "cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/attention.cpp"
#include <hwy/foreach_target.h>  // keep in this order
#include <hwy/highway.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "cpu/attention.h"
#include "cpu/cpu_ops.h"
#include "cpu/tile-inl.h"

// Softmax over blocks of keys with a running maximum, as in arXiv:2205.14135. Scores are computed transposed, a key in
// each row and a query in each lane: neither keys nor values need a transposition, the softmax runs down the columns
// without a horizontal step, and what the causal mask hides of a row is a prefix.

HWY_BEFORE_NAMESPACE();
namespace treble::cpu::HWY_NAMESPACE {

template <typename T>
class AttentionTile {
 public:
  AttentionTile(const Attention& args, const AttentionTask& task, const AttentionTiles& tiles)
      : args_(args),
        task_(task),
        tiles_(tiles),
        head_dim_(args.query.size(2)),
        group_(args.query.size(1) / args.key.size(1)),
        num_rows_(task.num_queries * group_) {}

  /// Leaves tiles.out, maximum and sum over the task's keys.
  void run() {
    load_queries();
    std::fill_n(tiles_.maximum(), round_up(num_rows_, kTileColumns), -std::numeric_limits<float>::infinity());
    std::fill_n(tiles_.sum(), round_up(num_rows_, kTileColumns), 0.0f);
    for (std::int64_t key = task_.begin_key; key < task_.end_key; key += kKeyBlock) {
      const std::int64_t num_keys = std::min(kKeyBlock, task_.end_key - key);
      const bool is_first = key == task_.begin_key;
      load_rows(args_.key, key, num_keys);
      tile_product(num_keys, num_rows_, head_dim_, tiles_.keys, tiles_.queries, tiles_.scores, Start::kZero);
      prefetch_rows(args_.value, key, num_keys);
      if (args_.causal) mask(key, num_keys);
      update_softmax(num_keys);
      if (!is_first) rescale_out();
      load_rows(args_.value, key, num_keys);
      prefetch_rows(args_.key, key + num_keys, std::min(kKeyBlock, task_.end_key - key - num_keys));
      tile_product<Layout::kColumns>(num_rows_, head_dim_, num_keys, tiles_.scores, tiles_.keys, tiles_.out,
                                     is_first ? Start::kZero : Start::kAdd);
    }
  }

  /// Divides by the sums, applies the gate and stores the rows.
  void finish() {
    for (std::int64_t row = 0; row < num_rows_; ++row) {
      const std::int64_t query = task_.first_query + row / group_;
      const std::int64_t head = task_.kv_head * group_ + row % group_;
      const VecF32 normalise = fill(1.0f / tiles_.sum()[row]);
      const T* gate = args_.gate ? row_of(args_.gate, query, head) : nullptr;
      T* out = args_.out.plain.as<T>() + query * args_.out.plain.stride(0) + head * head_dim_;
      for (std::int64_t i = 0; i < head_dim_; i += kLanes) {
        VecF32 x = hn::Mul(load(tiles_.out.row(row) + i), normalise);
        if (gate) x = hn::Mul(round_to<T>(x), round_to<T>(sigmoid(load(gate + i, head_dim_ - i))));
        store(x, out + i, head_dim_ - i);
      }
    }
  }

  /// Keeps the result over some of the keys: out, and in the columns after it maximum and sum.
  void store_part(Tile part) {
    for (std::int64_t row = 0; row < num_rows_; ++row) {
      std::copy_n(tiles_.out.row(row), head_dim_, part.row(row));
      part.row(row)[head_dim_] = tiles_.maximum()[row];
      part.row(row)[head_dim_ + 1] = tiles_.sum()[row];
    }
  }

  /// Leaves tiles.out and sum as if run() had seen the keys of all parts.
  void merge_parts(const Tile* parts) {
    for (std::int64_t row = 0; row < num_rows_; ++row) {
      float highest = -std::numeric_limits<float>::infinity();
      for (std::int64_t p = 0; p < task_.num_parts; ++p) highest = std::max(highest, parts[p].row(row)[head_dim_]);
      float* out = tiles_.out.row(row);
      std::fill_n(out, head_dim_, 0.0f);
      float sum = 0;
      for (std::int64_t p = 0; p < task_.num_parts; ++p) {
        const float* part = parts[p].row(row);
        const VecF32 scale = exponential(fill(part[head_dim_] - highest));
        sum += hn::GetLane(scale) * part[head_dim_ + 1];
        for (std::int64_t i = 0; i < head_dim_; i += kLanes)
          store(hn::MulAdd(scale, load(part + i), load(out + i)), out + i);
      }
      tiles_.sum()[row] = sum;
    }
  }

 private:
  static const T* row_of(const TensorView& view, std::int64_t token, std::int64_t head) {
    return view.as<T>() + token * view.stride(0) + head * view.stride(1);
  }

  void load_queries() {
    const std::int64_t padded_rows = round_up(num_rows_, kTileColumns);
    const Tile queries = tiles_.out;  // not in use yet
    for (std::int64_t row = 0; row < padded_rows; ++row) {
      if (row >= num_rows_) {
        std::fill_n(queries.row(row), head_dim_, 0.0f);
        continue;
      }
      load_row(row_of(args_.query, task_.first_query + row / group_, task_.kv_head * group_ + row % group_), head_dim_,
               args_.scale, queries.row(row));
    }
    transpose(padded_rows, head_dim_, queries, tiles_.queries);
  }

  void load_rows(const TensorView& view, std::int64_t first, std::int64_t num_rows) {
    for (std::int64_t i = 0; i < num_rows; ++i)
      load_row(row_of(view, first + i, task_.kv_head), head_dim_, 1, tiles_.keys.row(i));
  }

  void prefetch_rows(const TensorView& view, std::int64_t first, std::int64_t num_rows) {
    for (std::int64_t i = 0; i < num_rows; ++i) prefetch_row(row_of(view, first + i, task_.kv_head), head_dim_);
  }

  /// Query i reads the keys before end_key - num_queries + i + 1.
  void mask(std::int64_t key, std::int64_t num_keys) {
    const std::int64_t first_hidden = task_.end_key - task_.num_queries + 1;
    for (std::int64_t j = std::max<std::int64_t>(first_hidden - key, 0); j < num_keys; ++j)
      std::fill_n(tiles_.scores.row(j), (key + j - first_hidden + 1) * group_, -std::numeric_limits<float>::infinity());
  }

  /// scores become exp(score - maximum) with the maximum over all keys so far.
  void update_softmax(std::int64_t num_keys) {
    for (std::int64_t row = 0; row < num_rows_; row += kLanes) {
      const VecF32 old_maximum = load(tiles_.maximum() + row);
      VecF32 highest = old_maximum;
      for (std::int64_t j = 0; j < num_keys; ++j) highest = hn::Max(highest, load(tiles_.scores.row(j) + row));
      const VecF32 rescale = exponential(hn::Sub(old_maximum, highest));
      VecF32 total = hn::Mul(rescale, load(tiles_.sum() + row));
      for (std::int64_t j = 0; j < num_keys; ++j) {
        float* score = tiles_.scores.row(j) + row;
        const VecF32 weight = exponential(hn::Sub(load(score), highest));
        total = hn::Add(total, weight);
        store(weight, score);
      }
      store(highest, tiles_.maximum() + row);
      store(total, tiles_.sum() + row);
      store(rescale, tiles_.rescale() + row);
    }
  }

  void rescale_out() {
    for (std::int64_t row = 0; row < num_rows_; ++row) {
      const float rescale = tiles_.rescale()[row];
      if (rescale == 1.0f) continue;
      float* out = tiles_.out.row(row);
      for (std::int64_t i = 0; i < head_dim_; i += kLanes) store(hn::Mul(load(out + i), fill(rescale)), out + i);
    }
  }

  const Attention& args_;
  const AttentionTask& task_;
  const AttentionTiles& tiles_;
  const std::int64_t head_dim_;
  const std::int64_t group_;
  const std::int64_t num_rows_;
};

template <typename T>
void attend(const Attention& args, const AttentionTask& task, const AttentionTiles& tiles, Tile part) {
  AttentionTile<T> tile(args, task, tiles);
  tile.run();
  if (task.num_parts > 1) {
    tile.store_part(part);
  } else {
    tile.finish();
  }
}

template <typename T>
void merge(const Attention& args, const AttentionTask& task, const AttentionTiles& tiles, const Tile* parts) {
  AttentionTile<T> tile(args, task, tiles);
  tile.merge_parts(parts);
  tile.finish();
}

void run_attention_task(const Attention& args, const AttentionTask& task, const AttentionTiles& tiles, Tile part) {
  (args.query.dtype() == DType::kF32 ? attend<float> : attend<bfloat16>)(args, task, tiles, part);
}

void merge_attention_parts(const Attention& args, const AttentionTask& task, const AttentionTiles& tiles,
                           const Tile* parts) {
  (args.query.dtype() == DType::kF32 ? merge<float> : merge<bfloat16>)(args, task, tiles, parts);
}

}  // namespace treble::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treble::cpu {
namespace {

HWY_EXPORT(run_attention_task);
HWY_EXPORT(merge_attention_parts);

/// Query rows of one tile, all heads of a kv head counted: enough that a block of keys is widened for many of them, few
/// enough that queries and results stay in the second-level cache.
std::int64_t choose_tile_rows(std::int64_t head_dim) {
  return std::clamp<std::int64_t>(32768 / head_dim / kTileColumns * kTileColumns, 32, 192);
}

std::vector<AttentionTask> make_tasks(const Attention& args, std::int64_t queries_per_task) {
  const std::int32_t* q_borders = args.cu_seqlens_q.as<std::int32_t>();
  const std::int32_t* k_borders = args.cu_seqlens_k.as<std::int32_t>();
  std::vector<AttentionTask> tasks;
  for (std::int64_t n = 0; n + 1 < args.cu_seqlens_q.size(0); ++n) {
    for (std::int64_t query = q_borders[n]; query < q_borders[n + 1]; query += queries_per_task) {
      const std::int64_t num_queries = std::min(queries_per_task, q_borders[n + 1] - query);
      const std::int64_t rows_after = q_borders[n + 1] - query - num_queries;
      const std::int64_t end_key = k_borders[n + 1] - (args.causal ? rows_after : 0);
      for (std::int64_t head = 0; head < args.key.size(1); ++head)
        tasks.push_back({head, query, num_queries, k_borders[n], end_key, 0, 1});
    }
  }
  return tasks;
}

/// The same work with each task's keys shared out over `num_parts` tasks, or fewer where they are few.
std::vector<AttentionTask> split_keys(const std::vector<AttentionTask>& tasks, std::int64_t num_parts) {
  std::vector<AttentionTask> parts;
  for (const AttentionTask& task : tasks) {
    const std::int64_t num_keys = task.end_key - task.begin_key;
    const std::int64_t keys_per_part = round_up((num_keys + num_parts - 1) / num_parts, kKeyBlock);
    AttentionTask part = task;
    part.num_parts = (num_keys + keys_per_part - 1) / keys_per_part;
    for (part.part = 0; part.part < part.num_parts; ++part.part) {
      part.begin_key = task.begin_key + part.part * keys_per_part;
      part.end_key = std::min(part.begin_key + keys_per_part, task.end_key);
      parts.push_back(part);
    }
  }
  return parts;
}

}  // namespace

void CpuOps::do_attention(const Attention& args) {
  const std::int64_t head_dim = args.query.size(2);
  const std::int64_t group = args.query.size(1) / args.key.size(1);
  const std::int64_t queries_per_task = std::max<std::int64_t>(choose_tile_rows(head_dim) / group, 1);
  const std::int64_t tile_rows = queries_per_task * group;
  const auto tiles_in = [&](TileArena arena) { return AttentionTiles(arena, tile_rows, head_dim); };
  const std::int64_t scratch_floats = tiles_in(TileArena()).num_floats;

  std::vector<AttentionTask> tasks = make_tasks(args, queries_per_task);
  // Longest first, so that the last task to start is a short one.
  std::stable_sort(tasks.begin(), tasks.end(), [](const AttentionTask& a, const AttentionTask& b) {
    return a.end_key - a.begin_key > b.end_key - b.begin_key;
  });
  // Few queries of many keys: threads share the keys of a tile. (A causal tile's mask needs them together.)
  const auto num_tasks = static_cast<std::int64_t>(tasks.size());
  const std::int64_t wanted_tasks = 2 * available_threads();
  if (!args.causal && num_tasks > 0 && num_tasks < wanted_tasks)
    tasks = split_keys(tasks, (wanted_tasks + num_tasks - 1) / num_tasks);

  const Workspace::Scope scope(scratch_);
  std::vector<Tile> parts(tasks.size());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].num_parts == 1) continue;
    const std::int64_t stride = TileArena().take(1, head_dim + 2).stride;
    parts[i] = {scratch_.take(DType::kF32, {tile_rows, stride}).as<float>(), stride};
  }
  for_each_task(scratch_, static_cast<std::int64_t>(tasks.size()), scratch_floats,
                [&](std::int64_t task, float* scratch) {
                  const auto i = static_cast<std::size_t>(task);
                  HWY_DYNAMIC_DISPATCH(run_attention_task)(args, tasks[i], tiles_in(TileArena(scratch)), parts[i]);
                });
  const bool is_split = tasks.size() != static_cast<std::size_t>(num_tasks);
  for_each_task(scratch_, is_split ? static_cast<std::int64_t>(tasks.size()) : 0, scratch_floats,
                [&](std::int64_t task, float* scratch) {
                  const auto i = static_cast<std::size_t>(task);
                  if (tasks[i].num_parts == 1 || tasks[i].part > 0) return;
                  HWY_DYNAMIC_DISPATCH(merge_attention_parts)(args, tasks[i], tiles_in(TileArena(scratch)), &parts[i]);
                });
  quantize(args.out.plain, args.out.quantized);
}

}  // namespace treble::cpu
#endif
