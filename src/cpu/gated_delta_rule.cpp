#include "cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/gated_delta_rule.cpp"
#include <hwy/foreach_target.h>  // keep in this order
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "cpu/cpu_ops.h"
#include "cpu/gated_delta_rule.h"
#include "cpu/tile-inl.h"

// The chunked form. Within a chunk, with G the running sum of log_decay, D_ij = exp(G_i - G_j) for j <= i and S the
// state before it, the rows u_i = beta_i (value_i - key_i S_i) that the recurrence adds to the state solve
//     u_i = beta_i (value_i - exp(G_i) key_i S) - sum_{j<i} beta_i (key_i . key_j) D_ij u_j,
// and then
//     out_i = scale (exp(G_i) query_i S + sum_{j<=i} (query_i . key_j) D_ij u_j),
//     S'    = exp(G_last) S + sum_j exp(G_last - G_j) key_j^T u_j.
// Every exponent is a difference that cannot be positive, so nothing overflows and nothing is divided by a decay that
// has vanished.

HWY_BEFORE_NAMESPACE();
namespace treble::cpu::HWY_NAMESPACE {

/// The decays of one value head inside one chunk.
struct ChunkDecay {
  // G in two floats: where a strong decay lies early in the chunk, G is large, and later decays are small differences.
  alignas(64) float high[kChunkSize];
  alignas(64) float low[kChunkSize];
  alignas(64) float from_start[kChunkSize];  // exp(G_i)
  alignas(64) float to_end[kChunkSize];      // exp(G_last - G_i)

  ChunkDecay(const float* log_decay, std::int64_t stride, std::int64_t num_rows) : high{}, low{} {
    double sum = 0;
    for (std::int64_t i = 0; i < num_rows; ++i) {
      sum += static_cast<double>(log_decay[i * stride]);
      high[i] = static_cast<float>(sum);
      low[i] = static_cast<float>(sum - static_cast<double>(high[i]));
    }
    for (std::int64_t i = 0; i < num_rows; i += kLanes) {
      store(decay(hn::Add(load(high + i), load(low + i))), from_start + i);
      store(between(num_rows - 1, i), to_end + i);
    }
  }

  /// exp(G_i - G_j) for kLanes rows from j; 1 for those after i.
  HWY_INLINE VecF32 between(std::int64_t i, std::int64_t j) const {
    const VecF32 difference = hn::Add(hn::Sub(fill(high[i]), load(high + j)), hn::Sub(fill(low[i]), load(low + j)));
    return decay(hn::Min(difference, zero()));
  }

 private:
  /// exp(x), and 0 where it does not count any more: subnormal numbers are slow on some processors.
  static HWY_INLINE VecF32 decay(VecF32 x) { return hn::IfThenZeroElse(hn::Lt(x, fill(-60.0f)), exponential(x)); }
};

/// Calls product(row, count) for each block of kRegisterRows rows: a product with a triangle stops at a block's end.
template <typename Product>
HWY_INLINE void for_row_blocks(std::int64_t num_rows, const Product& product) {
  for (std::int64_t row = 0; row < num_rows; row += kRegisterRows)
    product(row, std::min<std::int64_t>(kRegisterRows, num_rows - row));
}

/// u_i += sum_{first <= j < i} solve_ij u_j for `count` rows from `first`, in order.
HWY_INLINE void substitute(std::int64_t first, int count, std::int64_t num_columns, Tile solve, Tile u) {
  for (std::int64_t column = 0; column < num_columns; column += kLanes) {
    VecF32 rows[kRegisterRows];
    for (int i = 0; i < count; ++i) {
      rows[i] = load(u.row(first + i) + column);
      for (int j = 0; j < i; ++j) rows[i] = hn::MulAdd(fill(solve.row(first + i)[first + j]), rows[j], rows[i]);
      store(rows[i], u.row(first + i) + column);
    }
  }
}

/// One task: the chunks of its value heads, one after the other.
template <typename T>
class DeltaRuleHeads {
 public:
  DeltaRuleHeads(const GatedDeltaRule& args, const DeltaRuleTask& task, const DeltaRuleTiles& tiles)
      : args_(args), task_(task), tiles_(tiles), key_dim_(args.key.size(2)), value_dim_(args.value.size(2)) {}

  void run() {
    for (std::int64_t head = 0; head < task_.num_value_heads; ++head) load_state(head);
    for (std::int64_t token = task_.begin; token < task_.end; token += kChunkSize) {
      const std::int64_t num_rows = std::min(kChunkSize, task_.end - token);
      load_keys(token, num_rows);
      for (std::int64_t head = 0; head < task_.num_value_heads; ++head) run_chunk(token, num_rows, head);
    }
    if (!args_.recurrent_state) return;
    for (std::int64_t head = 0; head < task_.num_value_heads; ++head) store_state(head);
  }

 private:
  static const T* row_of(const TensorView& view, std::int64_t token, std::int64_t head) {
    return view.as<T>() + token * view.stride(0) + head * view.stride(1);
  }

  Tile state_of(std::int64_t head) const { return tiles_.states.below(head * round_up(key_dim_, kTileRows)); }

  float* stored_state(std::int64_t head) const {
    return args_.recurrent_state.as<float>() + task_.sequence * args_.recurrent_state.stride(0) +
           (task_.first_value_head + head) * args_.recurrent_state.stride(1);
  }

  void load_state(std::int64_t head) {
    for (std::int64_t i = 0; i < key_dim_; ++i) {
      float* row = state_of(head).row(i);
      if (args_.recurrent_state) {
        load_row(stored_state(head) + i * args_.recurrent_state.stride(2), value_dim_, 1, row);
      } else {
        std::fill_n(row, value_dim_, 0.0f);
      }
    }
  }

  void store_state(std::int64_t head) {
    for (std::int64_t i = 0; i < key_dim_; ++i)
      std::copy_n(state_of(head).row(i), value_dim_, stored_state(head) + i * args_.recurrent_state.stride(2));
  }

  /// Keys and then queries in one tile, and what all value heads need of them: key_i . key_j and query_i . key_j.
  void load_keys(std::int64_t token, std::int64_t num_rows) {
    const Tile queries = tiles_.keys.below(num_rows);
    for (std::int64_t i = 0; i < num_rows; ++i) {
      load_row(row_of(args_.key, token + i, task_.key_head), key_dim_, 1, tiles_.keys.row(i));
      load_row(row_of(args_.query, token + i, task_.key_head), key_dim_, args_.scale, queries.row(i));
    }
    transpose(num_rows, key_dim_, tiles_.keys, tiles_.keys_transposed);
    for_row_blocks(num_rows, [&](std::int64_t row, std::int64_t count) {
      tile_product(count, row + count, key_dim_, tiles_.keys.below(row), tiles_.keys_transposed,
                   tiles_.key_key.below(row), Start::kZero);
      tile_product(count, row + count, key_dim_, queries.below(row), tiles_.keys_transposed,
                   tiles_.query_key.below(row), Start::kZero);
    });
  }

  void run_chunk(std::int64_t token, std::int64_t num_rows, std::int64_t head) {
    const std::int64_t value_head = task_.first_value_head + head;
    const std::int64_t gate_stride = args_.log_decay.stride(0);
    const ChunkDecay decay(args_.log_decay.as<float>() + token * gate_stride + value_head, gate_stride, num_rows);
    const Tile state = state_of(head);

    // key S and, below it, query S; they become u and out.
    const Tile u = tiles_.reads;
    const Tile out = tiles_.reads.below(num_rows);
    for (std::int64_t i = 0; i < num_rows; ++i) {
      prefetch_row(row_of(args_.value, token + i, value_head), value_dim_);
      if (head > 0 || token + kChunkSize + i >= task_.end) continue;  // the next chunk's
      prefetch_row(row_of(args_.key, token + kChunkSize + i, task_.key_head), key_dim_);
      prefetch_row(row_of(args_.query, token + kChunkSize + i, task_.key_head), key_dim_);
    }
    tile_product(2 * num_rows, value_dim_, key_dim_, tiles_.keys, state, tiles_.reads, Start::kZero);

    for (std::int64_t i = 0; i < num_rows; ++i) {
      const float beta = args_.beta.as<float>()[(token + i) * args_.beta.stride(0) + value_head];
      set_pair_rows(decay, i, beta);
      const T* value = row_of(args_.value, token + i, value_head);
      const VecF32 read_decay = fill(decay.from_start[i]);
      for (std::int64_t e = 0; e < value_dim_; e += kLanes) {
        const VecF32 error = hn::NegMulAdd(read_decay, load(u.row(i) + e), load(value + e, value_dim_ - e));
        store(hn::Mul(fill(beta), error), u.row(i) + e);
        store(hn::Mul(read_decay, load(out.row(i) + e)), out.row(i) + e);
      }
    }
    for_row_blocks(num_rows, [&](std::int64_t row, std::int64_t count) {
      if (row > 0) tile_product(count, value_dim_, row, tiles_.solve.below(row), u, u.below(row), Start::kAdd);
      if (count == kRegisterRows) {
        substitute(row, kRegisterRows, value_dim_, tiles_.solve, u);
      } else {
        substitute(row, static_cast<int>(count), value_dim_, tiles_.solve, u);
      }
    });
    for_row_blocks(num_rows, [&](std::int64_t row, std::int64_t count) {
      tile_product(count, value_dim_, row + count, tiles_.mix.below(row), u, out.below(row), Start::kAdd);
    });

    for (std::int64_t i = 0; i < num_rows; ++i) {
      T* stored = args_.out.as<T>() + (token + i) * args_.out.stride(0) + value_head * args_.out.stride(1);
      const VecF32 write_decay = fill(decay.to_end[i]);
      for (std::int64_t e = 0; e < value_dim_; e += kLanes) {
        store(load(out.row(i) + e), stored + e, value_dim_ - e);
        store(hn::Mul(write_decay, load(u.row(i) + e)), u.row(i) + e);
      }
    }
    const VecF32 state_decay = fill(decay.from_start[num_rows - 1]);
    for (std::int64_t i = 0; i < key_dim_; ++i) {
      for (std::int64_t e = 0; e < value_dim_; e += kLanes)
        store(hn::Mul(state_decay, load(state.row(i) + e)), state.row(i) + e);
    }
    tile_product<Layout::kColumns>(key_dim_, value_dim_, num_rows, tiles_.keys, u, state, Start::kAdd);
  }

  /// Row i of the two triangles, with zeros up to the end of its block:
  /// solve_ij = -beta_i (key_i . key_j) D_ij for j < i, and mix_ij = (query_i . key_j) D_ij for j <= i.
  HWY_INLINE void set_pair_rows(const ChunkDecay& decay, std::int64_t i, float beta) {
    const std::int64_t block_end = std::min(round_up(i + 1, kRegisterRows), kChunkSize);
    for (std::int64_t j = 0; j < block_end; j += kLanes) {
      const VecF32 between = decay.between(i, j);
      const VecF32 ahead = hn::Sub(fill(static_cast<float>(i - j)), hn::Iota(F32(), 0.0f));  // i - j of each lane
      const VecF32 solve = hn::Mul(fill(-beta), hn::Mul(load(tiles_.key_key.row(i) + j), between));
      const VecF32 mix = hn::Mul(load(tiles_.query_key.row(i) + j), between);
      store(hn::IfThenElseZero(hn::Gt(ahead, zero()), solve), tiles_.solve.row(i) + j);
      store(hn::IfThenElseZero(hn::Ge(ahead, zero()), mix), tiles_.mix.row(i) + j);
    }
  }

  const GatedDeltaRule& args_;
  const DeltaRuleTask& task_;
  const DeltaRuleTiles& tiles_;
  const std::int64_t key_dim_;
  const std::int64_t value_dim_;
};

void run_delta_rule_task(const GatedDeltaRule& args, const DeltaRuleTask& task, const DeltaRuleTiles& tiles) {
  if (args.query.dtype() == DType::kF32) {
    DeltaRuleHeads<float>(args, task, tiles).run();
  } else {
    DeltaRuleHeads<bfloat16>(args, task, tiles).run();
  }
}

}  // namespace treble::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treble::cpu {
namespace {

HWY_EXPORT(run_delta_rule_task);

/// Longest first, so that the last task to start is a short one.
std::vector<DeltaRuleTask> make_tasks(const GatedDeltaRule& args, std::int64_t value_heads_per_task) {
  const std::int64_t num_v_heads = args.value.size(1);
  const std::int64_t sharing = num_v_heads / args.key.size(1);
  const std::int32_t* borders = args.cu_seqlens.as<std::int32_t>();
  std::vector<DeltaRuleTask> tasks;
  for (std::int64_t n = 0; n + 1 < args.cu_seqlens.size(0); ++n) {
    if (borders[n] == borders[n + 1]) continue;
    for (std::int64_t head = 0; head < num_v_heads; head += value_heads_per_task)
      tasks.push_back({n, borders[n], borders[n + 1], head / sharing, head, value_heads_per_task});
  }
  std::stable_sort(tasks.begin(), tasks.end(),
                   [](const DeltaRuleTask& a, const DeltaRuleTask& b) { return a.end - a.begin > b.end - b.begin; });
  return tasks;
}

}  // namespace

void CpuOps::do_gated_delta_rule(const GatedDeltaRule& args) {
  const std::int64_t num_k_heads = args.key.size(1);
  const std::int64_t num_seqs = args.cu_seqlens.size(0) - 1;
  // The value heads of one key head share a tenth of their work; with few tasks, threads matter more.
  const bool share = num_seqs * num_k_heads >= 2 * available_threads();
  const std::int64_t value_heads_per_task = share ? args.value.size(1) / num_k_heads : 1;
  const std::vector<DeltaRuleTask> tasks = make_tasks(args, value_heads_per_task);

  const auto tiles_in = [&](TileArena arena) {
    return DeltaRuleTiles(arena, args.key.size(2), args.value.size(2), value_heads_per_task);
  };
  for_each_task(scratch_, static_cast<std::int64_t>(tasks.size()), tiles_in(TileArena()).num_floats,
                [&](std::int64_t i, float* scratch) {
                  HWY_DYNAMIC_DISPATCH(run_delta_rule_task)
                  (args, tasks[static_cast<std::size_t>(i)], tiles_in(TileArena(scratch)));
                });
}

}  // namespace treble::cpu
#endif
