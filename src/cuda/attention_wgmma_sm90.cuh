#pragma once

#include <cuda.h>

#include <cstdint>

#include "cuda/attention_schedule.h"
#include "cuda/rows.cuh"
#include "cuda/tma_sm90.cuh"
#include "cuda/wgmma_sm90.cuh"

// Softmax attention in bf16 for heads of 256 features on Hopper's wgmma, with a running maximum as in arXiv:2205.14135
// and the overlap of arXiv:2407.08608. A block is one warpgroup that copies and one or two that compute, and works off
// its share of (tile of queries, head) items to the end, so that the copies of an item run while the one before it
// ends. Each computing warpgroup takes 64 queries; keys and values come in blocks of 80, counted from the sequence's
// start, two of each in shared memory: 224 KiB with the queries. The scores of a block are computed together with the
// weighted values of the block before it: exponentials of one run under products of the other. Scores and sums are
// fp32; the weights exp(score - maximum) are rounded to bf16 before they meet the values, their sum is not. What a
// query gets depends on its sequence alone. Limit: tensor cores; 64 x 80 blocks on the diagonal are half wasted.

namespace treble::cuda {

struct AttentionWgmma {
  CUtensorMap query, key, value;  // boxes of kQueries or kKeys rows
  Heads<const bfloat16> gate;     // may be empty
  CUtensorMap gate_map;           // like query, to prefetch
  Rows<bfloat16> out;
  const AttentionTile* tiles;  // of kConsumers * kQueries queries
  const std::int32_t* items;   // as deal_attention_tiles returns them
  std::int32_t num_heads, group;
  bool causal;
  float score_scale;  // to powers of two; positive
};

namespace attention_wgmma {

constexpr int kHeadDim = 256;
constexpr int kQueries = 64;  // of a warpgroup
constexpr int kKeys = 80;
constexpr int kStages = 2;
constexpr int kBoxFeatures = 64;
constexpr int kBoxes = kHeadDim / kBoxFeatures;
constexpr int kRowBytes = kBoxFeatures * sizeof(bfloat16);  // of a box
constexpr int kQueryBoxBytes = kQueries * kRowBytes, kQueryBytes = kBoxes * kQueryBoxBytes;
constexpr int kKeyBoxBytes = kKeys * kRowBytes, kKeyBytes = kBoxes * kKeyBoxBytes;
constexpr int kAlignment = 1024;  // of swizzled boxes
constexpr int kGateAhead = 6;     // blocks of keys before a tile's end, when its gates come to the L2 cache

constexpr int kBarriers = 2 * 2 + 5 * kStages;
constexpr int kTotals = 3 * kWarpgroup;  // fp32, never read

/// Threads of a block.
constexpr int num_threads(int num_consumers) {
  return (1 + num_consumers) * kWarpgroup;
}

/// Dynamic shared memory of a block.
constexpr std::size_t shared_bytes(int num_consumers) {
  return static_cast<std::size_t>(num_consumers) * kQueryBytes + 2 * kStages * kKeyBytes + kBarriers * 8 +
         kTotals * sizeof(float) + kAlignment;
}

/// Addresses in shared memory.
struct SharedMemory {
  std::uint32_t base;  // a multiple of kAlignment
  int num_consumers;

  /// [kBoxes, kKeys, kBoxFeatures]
  __device__ __forceinline__ std::uint32_t keys(int stage) const { return base + stage * kKeyBytes; }
  __device__ __forceinline__ std::uint32_t values(int stage) const { return keys(kStages + stage); }
  /// [kBoxes, kQueries, kBoxFeatures]
  __device__ __forceinline__ std::uint32_t queries(int consumer) const {
    return values(kStages) + consumer * kQueryBytes;
  }
  __device__ __forceinline__ PhaseBarrier barrier(int i) const { return {queries(num_consumers) + 8 * i}; }
  __device__ __forceinline__ PhaseBarrier query_full(int consumer) const { return barrier(consumer); }
  __device__ __forceinline__ PhaseBarrier query_empty(int consumer) const { return barrier(2 + consumer); }
  __device__ __forceinline__ PhaseBarrier key_full(int stage) const { return barrier(4 + stage); }
  __device__ __forceinline__ PhaseBarrier key_empty(int stage) const { return barrier(4 + kStages + stage); }
  __device__ __forceinline__ PhaseBarrier value_full(int stage) const { return barrier(4 + 2 * kStages + stage); }
  __device__ __forceinline__ PhaseBarrier value_empty(int stage) const { return barrier(4 + 3 * kStages + stage); }
  /// Of the last block of a tile, whose rows past the last key are zeroed next.
  __device__ __forceinline__ PhaseBarrier value_landed(int stage) const { return barrier(4 + 4 * kStages + stage); }
  __device__ __forceinline__ std::uint32_t total() const { return barrier(kBarriers).address + 4 * threadIdx.x; }
};

/// 2^x, results below the normal numbers are 0.
__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// Stores that are made whether or not the compiler sees who reads them.
__device__ __forceinline__ void store_shared(std::uint32_t address, float x) {
  asm volatile("st.volatile.shared.f32 [%0], %1;" ::"r"(address), "f"(x) : "memory");
}
__device__ __forceinline__ void zero_shared(std::uint32_t address) {  // 16 bytes
  asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(address), "r"(0) : "memory");
}

__device__ __forceinline__ int num_key_blocks(int num_keys) {
  return (num_keys + kKeys - 1) / kKeys;
}

/// Where block `i` of keys or values lies, and its turn there.
struct Slot {
  int stage;
  std::uint32_t parity;
  __device__ __forceinline__ explicit Slot(std::uint32_t i)
      : stage(static_cast<int>(i % kStages)), parity(i / kStages % 2) {}
};

/// One thread brings queries, keys and values of all items, as far ahead as there is room.
template <int kConsumers>
__device__ __forceinline__ void copy_items(const AttentionWgmma& args, const SharedMemory& shared, int begin, int end) {
  const auto copy_block = [&](const CUtensorMap& map, std::uint32_t to, int kv_head, int row, PhaseBarrier full) {
    full.arrive_and_expect(kKeyBytes);
#pragma unroll
    for (int box = 0; box < kBoxes; ++box)
      load_box(to + box * kKeyBoxBytes, map, full, box * kBoxFeatures, kv_head, row);
  };
  std::uint32_t seen = 0, query_parity = 0;
  for (int i = begin; i < end; ++i) {
    const std::int32_t item = args.items[i];
    const AttentionTile tile = args.tiles[item / args.num_heads];
    const int head = item % args.num_heads, kv_head = head / args.group;
    const int num_blocks = num_key_blocks(tile.num_keys);
    const auto copy_values = [&](int block) {
      const Slot slot(seen + block);
      shared.value_empty(slot.stage).wait(slot.parity ^ 1);
      const bool is_cut = block == num_blocks - 1 && tile.num_keys % kKeys != 0;
      copy_block(args.value, shared.values(slot.stage), kv_head, tile.first_key + block * kKeys,
                 is_cut ? shared.value_landed(slot.stage) : shared.value_full(slot.stage));
    };
    for (int block = 0; block < num_blocks; ++block) {
      const Slot slot(seen + block);
      shared.key_empty(slot.stage).wait(slot.parity ^ 1);
      copy_block(args.key, shared.keys(slot.stage), kv_head, tile.first_key + block * kKeys,
                 shared.key_full(slot.stage));
      if (block == 0) {
#pragma unroll
        for (int consumer = 0; consumer < kConsumers; ++consumer) {
          shared.query_empty(consumer).wait(query_parity ^ 1);
          const PhaseBarrier full = shared.query_full(consumer);
          full.arrive_and_expect(kQueryBytes);
#pragma unroll
          for (int box = 0; box < kBoxes; ++box) {
            load_box(shared.queries(consumer) + box * kQueryBoxBytes, args.query, full, box * kBoxFeatures, head,
                     tile.first_query + consumer * kQueries);
          }
        }
      } else {
        copy_values(block - 1);
      }
      if (args.gate.data && block == max(num_blocks - kGateAhead, 0)) {
#pragma unroll
        for (int box = 0; box < kConsumers * kBoxes; ++box)
          prefetch_box(args.gate_map, box % kBoxes * kBoxFeatures, head, tile.first_query + box / kBoxes * kQueries);
      }
    }
    copy_values(num_blocks - 1);
    seen += num_blocks;
    query_parity ^= 1;
  }
}

/// One warp zeroes the values past the last key of each tile: they belong to other tokens, and a weight of zero times
/// an infinity would be no number.
__device__ __forceinline__ void cut_values(const AttentionWgmma& args, const SharedMemory& shared, int begin, int end) {
  std::uint32_t seen = 0, parities = 0;  // a bit for each stage
  for (int i = begin; i < end; ++i) {
    const std::int32_t num_keys = args.tiles[args.items[i] / args.num_heads].num_keys;
    seen += num_key_blocks(num_keys);
    const int num_rows = num_keys % kKeys;
    if (num_rows == 0) continue;
    const int stage = Slot(seen - 1).stage;
    shared.value_landed(stage).wait(parities >> stage & 1);
    parities ^= 1u << stage;
    for (int box = 0; box < kBoxes; ++box) {
      const std::uint32_t rows = shared.values(stage) + box * kKeyBoxBytes;
      for (int byte = num_rows * kRowBytes + lane_id() * 16; byte < kKeyBoxBytes; byte += kWarpSize * 16)
        zero_shared(rows + byte);
    }
    publish_shared_writes();
    sync_warp();
    if (lane_id() == 0) shared.value_full(stage).arrive();
  }
}

constexpr int kScores = kQueries * kKeys / kWarpgroup;   // of a thread
constexpr int kSums = kQueries * kHeadDim / kWarpgroup;  // of a thread
constexpr int kWeightWords = kScores / 2;                // two weights each

/// Rows lane / 4 and lane / 4 + 8 of this warp's sixteen. Totals are of this lane's columns.
struct Softmax {
  float maximum[2] = {-INFINITY, -INFINITY}, total[2] = {};
};

/// Starts scores = queries keys^T.
__device__ __forceinline__ void multiply_keys(float (&scores)[kScores], std::uint64_t queries, std::uint64_t keys) {
#pragma unroll
  for (int k = 0; k < kHeadDim / 16; ++k) {
    const int box = k / 4, bytes = k % 4 * 32;
    Wgmma<kKeys>::multiply(scores, move_operand(queries, box * kQueryBoxBytes + bytes),
                           move_operand(keys, box * kKeyBoxBytes + bytes), k > 0);
  }
}

/// Starts sums += weights values.
__device__ __forceinline__ void multiply_values(float (&sums)[kSums],
                                                const std::uint32_t (&weights)[kWeightWords / 4][4],
                                                std::uint64_t values) {
#pragma unroll
  for (int k = 0; k < kKeys / 16; ++k)
    Wgmma<kHeadDim>::add_fragment(sums, weights[k], move_operand(values, k * 16 * kRowBytes));
}

/// Hides the scores of keys that a row does not read. @param limits  keys of the block that each row reads
__device__ __forceinline__ void hide_scores(float (&scores)[kScores], const int (&limits)[2]) {
  const int first_column = lane_id() % 4 * 2;
#pragma unroll
  for (int i = 0; i < kScores; ++i) {
    const int column = i / 4 * 8 + i % 2;
    if (column >= limits[i / 2 % 2] - first_column) scores[i] = -INFINITY;
  }
}

/// Scores to weights; what sums so far are to be multiplied by.
__device__ __forceinline__ void weigh_scores(float (&scores)[kScores], float score_scale, Softmax& softmax,
                                             float (&rescale)[2]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float highest = softmax.maximum[half];
#pragma unroll
    for (int i = 2 * half; i < kScores; i += 4) highest = fmaxf(highest, fmaxf(scores[i], scores[i + 1]));
    highest = fmaxf(highest, shuffle_xor(highest, 1));
    highest = fmaxf(highest, shuffle_xor(highest, 2));
    const float shift = highest * score_scale;
    rescale[half] = exp2_fast((softmax.maximum[half] - highest) * score_scale);
    softmax.maximum[half] = highest;
    float total[2] = {softmax.total[half] * rescale[half], 0};
#pragma unroll
    for (int i = 2 * half; i < kScores; i += 4) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        scores[i + c] = exp2_fast(fmaf(scores[i + c], score_scale, -shift));
        total[c] += scores[i + c];
      }
    }
    softmax.total[half] = total[0] + total[1];
  }
}

/// Weights as operand fragments of 16 keys: two groups of eight columns each.
__device__ __forceinline__ void round_weights(const float (&scores)[kScores],
                                              std::uint32_t (&weights)[kWeightWords / 4][4]) {
#pragma unroll
  for (int i = 0; i < kWeightWords; ++i) weights[i / 4][i % 4] = pack_bf16(scores[2 * i], scores[2 * i + 1]);
}

/// Four lanes that hold neighbouring pairs of four groups of eight columns exchange them: lane l then holds group l.
__device__ __forceinline__ uint4 gather_group(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  const bool is_odd = lane_id() % 2 != 0, is_upper = lane_id() % 4 >= 2;
  const std::uint32_t ab = shuffle_xor(is_odd ? a : b, 1), cd = shuffle_xor(is_odd ? c : d, 1);
  if (is_odd) {
    a = ab, c = cd;
  } else {
    b = ab, d = cd;
  }
  const std::uint32_t first = shuffle_xor(is_upper ? a : c, 2), second = shuffle_xor(is_upper ? b : d, 2);
  return is_upper ? make_uint4(first, second, c, d) : make_uint4(a, b, first, second);
}

__device__ __forceinline__ std::uint32_t apply_gate(std::uint32_t x, std::uint32_t gate) {
  const std::uint32_t sigmoids = pack_bf16(sigmoid_as<bfloat16>(low_bf16(gate)), sigmoid_as<bfloat16>(high_bf16(gate)));
  return pack_bf16(low_bf16(x) * low_bf16(sigmoids), high_bf16(x) * high_bf16(sigmoids));
}

/// An eighth of a thread's share of a tile: of one of its two rows, eight columns of each of some groups of 32.
struct OutputPart {
  static constexpr int kParts = 8;
  static constexpr int kGroups = 2 * kHeadDim / 32 / kParts;
  int half, first_group;

  __device__ __forceinline__ explicit OutputPart(int i)
      : half(i / (kParts / 2)), first_group(i % (kParts / 2) * kGroups) {}
  __device__ __forceinline__ int row() const { return warp_id() % 4 * 16 + lane_id() / 4 + 8 * half; }
  __device__ __forceinline__ int column() const { return first_group * 32 + lane_id() % 4 * 8; }
};

/// Starts reading gates.
__device__ __forceinline__ void load_gates(uint4 (&gates)[OutputPart::kGroups], const AttentionWgmma& args,
                                           OutputPart part, std::int64_t first_query, int num_rows, int head) {
  const int row = part.row();
  const bfloat16* from = args.gate.row(first_query + (row < num_rows ? row : 0), head) + part.column();
#pragma unroll
  for (int i = 0; i < OutputPart::kGroups; ++i) {
    // Volatile: not moved behind what is computed meanwhile.
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(gates[i].x), "=r"(gates[i].y), "=r"(gates[i].z), "=r"(gates[i].w)
                 : "l"(from + i * 32));
  }
}

/// Applies gates to what attention gave, and stores.
__device__ __forceinline__ void store_part(const AttentionWgmma& args, const float (&sums)[kSums],
                                           const float (&inverse_totals)[2], const uint4 (&gates)[OutputPart::kGroups],
                                           OutputPart part, std::int64_t first_query, int num_rows, int head) {
  const int row = part.row();
  bfloat16* out = args.out.row(first_query + row) + static_cast<std::int64_t>(head) * kHeadDim + part.column();
#pragma unroll
  for (int i = 0; i < OutputPart::kGroups; ++i) {
    std::uint32_t pairs[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int sum = (4 * (part.first_group + i) + j) * 4 + 2 * part.half;
      pairs[j] = pack_bf16(sums[sum] * inverse_totals[part.half], sums[sum + 1] * inverse_totals[part.half]);
    }
    uint4 x = gather_group(pairs[0], pairs[1], pairs[2], pairs[3]);
    if (args.gate.data) {
      x.x = apply_gate(x.x, gates[i].x);
      x.y = apply_gate(x.y, gates[i].y);
      x.z = apply_gate(x.z, gates[i].z);
      x.w = apply_gate(x.w, gates[i].w);
    }
    if (row < num_rows) *reinterpret_cast<uint4*>(out + i * 32) = x;
  }
}

/// A warpgroup computes its 64 queries of all items.
__device__ __forceinline__ void compute_items(const AttentionWgmma& args, const SharedMemory& shared, int begin,
                                              int end, int consumer) {
  const std::uint64_t queries = describe_operand(shared.queries(consumer));
  const std::uint64_t all_keys = describe_operand(shared.keys(0));
  const std::uint64_t all_values = describe_transposed_operand(shared.values(0), kKeyBoxBytes);
  const auto release = [](PhaseBarrier empty) {  // when this warp has read what it guards
    if (lane_id() == 0) empty.arrive();
  };
  const int row = warp_id() % 4 * 16 + lane_id() / 4;
  std::uint32_t seen = 0, query_parity = 0;
  for (int i = begin; i < end; ++i) {
    const std::int32_t item = args.items[i];
    const AttentionTile tile = args.tiles[item / args.num_heads];
    const int head = item % args.num_heads;
    const int num_blocks = num_key_blocks(tile.num_keys);
    // This warpgroup's rows may be fewer, and with a causal mask read fewer keys than the tile's.
    const int num_rows = min(tile.num_queries - consumer * kQueries, kQueries);
    const int rows_after = tile.num_queries - consumer * kQueries - num_rows;
    const int num_keys = args.causal ? tile.num_keys - rows_after : tile.num_keys;
    const int own_blocks = num_rows > 0 ? num_key_blocks(num_keys) : 0;
    shared.query_full(consumer).wait(query_parity);
    query_parity ^= 1;

    if (own_blocks > 0) {
      // Rows past the last query read all keys: their results go nowhere.
      const int all_read = args.causal ? num_keys - (num_rows - 1) : num_keys;  // keys that every row reads
      const int limits[2] = {args.causal ? num_keys - max(num_rows - 1 - row, 0) : num_keys,
                             args.causal ? num_keys - max(num_rows - 9 - row, 0) : num_keys};
      float sums[kSums] = {}, scores[kScores];
      std::uint32_t weights[kWeightWords / 4][4];
      Softmax softmax;
      float rescale[2];
      const auto weigh = [&](int block) {
        if ((block + 1) * kKeys > all_read) {
          const int left[2] = {limits[0] - block * kKeys, limits[1] - block * kKeys};
          hide_scores(scores, left);
        }
        weigh_scores(scores, args.score_scale, softmax, rescale);
      };
      {
        const Slot slot(seen);
        shared.key_full(slot.stage).wait(slot.parity);
        keep_sums_here(scores);
        begin_products();
        multiply_keys(scores, queries, move_operand(all_keys, slot.stage * kKeyBytes));
        commit_products();
        wait_for_products<0>();
        keep_sums_here(scores);
        release(shared.key_empty(slot.stage));
        if (own_blocks == 1) release(shared.query_empty(consumer));
        weigh(0);
        round_weights(scores, weights);
      }
      for (int block = 1; block < own_blocks; ++block) {
        const Slot slot(seen + block), previous(seen + block - 1);
        shared.key_full(slot.stage).wait(slot.parity);
        keep_sums_here(scores);
        keep_sums_here(sums);
        begin_products();
        multiply_keys(scores, queries, move_operand(all_keys, slot.stage * kKeyBytes));
        commit_products();
        shared.value_full(previous.stage).wait(previous.parity);
        begin_products();
        multiply_values(sums, weights, move_operand(all_values, previous.stage * kKeyBytes));
        commit_products();
        wait_for_products<1>();  // all but the values
        keep_sums_here(scores);
        release(shared.key_empty(slot.stage));
        if (block == own_blocks - 1) release(shared.query_empty(consumer));
        weigh(block);
        // A compiler that sees no reason against it waits for the values before it computes the weights, and nothing
        // overlaps. Their sum, stored before the wait, is a reason.
        store_shared(shared.total(), softmax.total[0] + softmax.total[1]);
        wait_for_products<0>();
        keep_sums_here(sums);
        release(shared.value_empty(previous.stage));
#pragma unroll
        for (int s = 0; s < kSums; ++s) sums[s] *= rescale[s / 2 % 2];
        round_weights(scores, weights);
      }
      const Slot last(seen + own_blocks - 1);
      shared.value_full(last.stage).wait(last.parity);
      keep_sums_here(sums);
      begin_products();
      multiply_values(sums, weights, move_operand(all_values, last.stage * kKeyBytes));
      commit_products();
      // Gates are on their way while what comes before them is computed.
      const std::int64_t first_query = tile.first_query + consumer * kQueries;
      uint4 gates[2][OutputPart::kGroups];
      if (args.gate.data) load_gates(gates[0], args, OutputPart(0), first_query, num_rows, head);
      wait_for_products<0>();
      keep_sums_here(sums);
      release(shared.value_empty(last.stage));
      float inverse_totals[2];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float total = softmax.total[half];
        total += shuffle_xor(total, 1);
        total += shuffle_xor(total, 2);
        inverse_totals[half] = 1.0f / total;
      }
#pragma unroll
      for (int i = 0; i < OutputPart::kParts; ++i) {
        if (args.gate.data && i + 1 < OutputPart::kParts)
          load_gates(gates[(i + 1) % 2], args, OutputPart(i + 1), first_query, num_rows, head);
        store_part(args, sums, inverse_totals, gates[i % 2], OutputPart(i), first_query, num_rows, head);
      }
    } else {
      release(shared.query_empty(consumer));
    }
    // What only the other warpgroup reads. It is waited for, or this release would count for the block before it.
    for (int block = own_blocks; block < num_blocks; ++block) {
      const Slot slot(seen + block);
      shared.key_full(slot.stage).wait(slot.parity);
      release(shared.key_empty(slot.stage));
      shared.value_full(slot.stage).wait(slot.parity);
      release(shared.value_empty(slot.stage));
    }
    seen += num_blocks;
  }
}

/// @tparam kConsumers  computing warpgroups, 1 or 2
template <int kConsumers>
__global__ void __launch_bounds__(num_threads(kConsumers), 1)
    attention_wgmma_kernel(const __grid_constant__ AttentionWgmma args) {
  if constexpr (kHasWgmma) {
    const std::uint32_t start = shared_address(dynamic_shared());
    const SharedMemory shared{(start + kAlignment - 1) / kAlignment * kAlignment, kConsumers};
    wait_for_earlier_kernels();
    const int begin = args.items[blockIdx.x], end = args.items[blockIdx.x + 1];
    if (threadIdx.x == 0) {
      constexpr int kReaders = 4 * kConsumers;  // warps
      for (int i = 0; i < kConsumers; ++i) {
        shared.query_full(i).init(1);
        shared.query_empty(i).init(4);
      }
      for (int i = 0; i < kStages; ++i) {
        shared.key_full(i).init(1);
        shared.key_empty(i).init(kReaders);
        shared.value_full(i).init(1);
        shared.value_empty(i).init(kReaders);
        shared.value_landed(i).init(1);
      }
      publish_barriers();
    }
    sync_block();
    // 65,536 registers in all.
    if (warp_id() < 4) {
      shrink_registers<24>();
      if (warp_id() == 0 && lane_id() == 0) copy_items<kConsumers>(args, shared, begin, end);
      if (warp_id() == 1) cut_values(args, shared, begin, end);
    } else {
      grow_registers<240>();
      compute_items(args, shared, begin, end, warp_id() / 4 - 1);
    }
  }
}

}  // namespace attention_wgmma
}  // namespace treble::cuda
