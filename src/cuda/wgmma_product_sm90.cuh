#pragma once

#include <algorithm>
#include <cstdint>

#include "cuda/rows.cuh"
#include "cuda/tma_sm90.cuh"
#include "cuda/wgmma_sm90.cuh"

// Products of matrices on Hopper's wgmma, with an epilogue on the sums: what products of bf16 (linear_wgmma_sm90.cu)
// and of int8 (linear_int8_wgmma_sm90.cu) have in common.
//
// A block takes tiles of weight rows x tokens, one after the other, as many blocks as multiprocessors. A tile's weight
// is the first operand of wgmma and its tokens are the second, because their number may be any multiple of 8 (int8: 16)
// there: that lets the tile fit the tokens. One warpgroup produces: one thread of it starts the copies of
// 128 bytes of both operands' rows (a stage) into a ring in shared memory. The others consume: each multiplies 64
// weight rows, or twice 64, with all tokens of the tile, and runs its own epilogue, so that one's epilogue overlaps
// with the others' products; meanwhile the ring fills for the next tile.
//
// Two blocks are a cluster: neighbours along the tokens, so they need the same weight, or along the weight, so they
// need the same tokens. Each copies half of it to both. A stage is thus free when the consumers of both blocks have
// read it.
//
// For SwiGLU the weight's rows come as eight rows of gate, the eight of up that belong to them, and so on: one tensor
// map over both matrices has their distance as a stride. A thread then has the sums of gate and up of the same feature.
//
// A product that is added to what its output holds brings the old values into the place in shared memory where the sums
// will be stored: the first box of a tile while it is multiplied, the others to the L2 cache.
//
// Order of tiles: of some tiles of tokens, whose inputs stay in the L2 cache, all weight tiles, each once.

namespace treble::cuda {
// Not nameless: where a device has no wgmma, nothing refers to what is here.
namespace wgmma_sm90 {

constexpr int kRowBytes = 128;  // of a row of an operand in a stage: a row of the swizzle's pattern
constexpr int kStepBytes = 32;  // of it that one wgmma takes
constexpr int kBlockRows = 64;  // weight rows that one wgmma takes
constexpr int kSlabRows = 16;   // weight rows of one warp of it
constexpr int kClusterSize = 2;
constexpr int kPattern = 1024;  // bytes of the swizzle's pattern
constexpr int kMostSharedBytes = 227 << 10;

constexpr int round_up(int value, int multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// What the two blocks of a cluster have in common.
enum class Shares { kWeight, kTokens };

/// Sizes that follow from a tile: kConsumers warpgroups of kBlocks times 64 weight rows, times kTokens.
/// Operands: the type of elements and sums, and what turns sums into the fp32 values that Epilogue takes.
template <typename Operands_, int kConsumers_, int kBlocks_, int kTokens_, Shares kShares_, typename Epilogue_>
struct Config {
  using Operands = Operands_;
  using Sum = typename Operands::Sum;
  using Epilogue = Epilogue_;
  static constexpr Shares kShares = kShares_;
  static constexpr int kConsumers = kConsumers_, kBlocks = kBlocks_, kTokens = kTokens_;
  static constexpr int kRows = kConsumers * kBlocks * kBlockRows;
  static constexpr int kThreads = (kConsumers + 1) * kWarpgroup;
  static constexpr int kSlabs = kRows / kSlabRows;
  static constexpr int kTileK = kRowBytes / Operands::kElementBytes;  // features in a stage

  // What a block copies in a stage, half of one operand, and what a cluster takes at once.
  static constexpr int kTokenTiles = kShares == Shares::kWeight ? kClusterSize : 1;
  static constexpr int kFeatureTiles = kClusterSize / kTokenTiles;
  static constexpr int kCopiedSlabs = kSlabs / kTokenTiles, kCopiedTokens = round_up(kTokens / kFeatureTiles, 8);

  static constexpr int kFeatures = kSlabs * 8 * Epilogue::kGroups;  // of the output, in a tile
  static constexpr int kConsumerFeatures = kFeatures / kConsumers;
  static constexpr int kBoxFeatures = std::min(64, kConsumerFeatures);  // in one store
  static constexpr int kBoxes = kConsumerFeatures / kBoxFeatures;
  static constexpr int kBoxBlocks = kBlocks / kBoxes;
  static constexpr int kBoxRowBytes = kBoxFeatures * 2;

  static constexpr int kStageBytes = (kRows + kTokens) * kRowBytes;
  static constexpr int kBoxBytes = round_up(kTokens * kBoxRowBytes, kPattern);
  static constexpr int kOutBytes = kConsumers * kBoxBytes;
  static constexpr int kBarrierBytes = 256, kMostStages = 12;
  static constexpr int kScaleBytes = kConsumers * Operands::kScaleBytes;
  static constexpr int kOtherBytes = kPattern + kOutBytes + kBarrierBytes + kScaleBytes;
  static constexpr int kStages = std::min(kMostStages, (kMostSharedBytes - kOtherBytes) / kStageBytes);
  static constexpr int kSharedBytes = kStages * kStageBytes + kOtherBytes;

  // Of 512 registers for a thread of each warpgroup, or what is left of them in steps of 8: with three warpgroups 504,
  // with six 480.
  static constexpr int kProducerRegisters = kConsumers == 3 ? 32 : 40;
  static constexpr int kConsumerRegisters = kConsumers <= 2 ? 232 : kConsumers == 3 ? 160 : 88;
  static_assert(kConsumers <= 3 || kConsumers == 5);
  static_assert(kRows * kRowBytes % kPattern == 0 && kCopiedTokens * kRowBytes % kPattern == 0 && kTokens % 8 == 0);
  static_assert(kStages >= 2 && (2 * kStages + kConsumers) * 8 <= kBarrierBytes);
};

/// What clusters take, and in which order: a unit is one or two tiles of tokens, and of features.
struct Schedule {
  int num_token_units;
  int num_feature_units;
  int token_units_in_group;  // whose inputs the L2 cache keeps
  int num_stages;            // along the features of the input

  struct Unit {
    int tokens, features;
  };
  __device__ __forceinline__ int num_units() const { return num_token_units * num_feature_units; }
  __device__ __forceinline__ Unit unit(int index) const {
    const int group = index / (token_units_in_group * num_feature_units);
    const int first = group * token_units_in_group;
    const int width = min(token_units_in_group, num_token_units - first);
    const int rest = index - first * num_feature_units;
    return {first + rest % width, rest / width};
  }
};

/// The tile of a block: its first token, and its place along the weight.
template <typename C>
struct Tile {
  int token, feature_tile;

  __device__ __forceinline__ Tile(const Schedule::Unit& unit, int rank)
      : token((unit.tokens * C::kTokenTiles + (C::kTokenTiles > 1 ? rank : 0)) * C::kTokens),
        feature_tile(unit.features * C::kFeatureTiles + (C::kFeatureTiles > 1 ? rank : 0)) {}
};

/// Where stages, outputs, barriers and scales lie in shared memory.
template <typename C>
struct SharedMemory {
  std::uint32_t base;  // a multiple of the swizzle's pattern

  __device__ __forceinline__ std::uint32_t weight(int stage) const { return base + stage * C::kStageBytes; }
  __device__ __forceinline__ std::uint32_t tokens(int stage) const { return weight(stage) + C::kRows * kRowBytes; }
  __device__ __forceinline__ std::uint32_t out(int consumer) const {
    return base + C::kStages * C::kStageBytes + consumer * C::kBoxBytes;
  }
  __device__ __forceinline__ PhaseBarrier filled(int stage) const { return {out(C::kConsumers) + 8 * stage}; }
  __device__ __forceinline__ PhaseBarrier emptied(int stage) const {
    return {out(C::kConsumers) + 8 * (C::kStages + stage)};
  }
  __device__ __forceinline__ PhaseBarrier old_values(int consumer) const {
    return {out(C::kConsumers) + 8 * (2 * C::kStages + consumer)};
  }
  __device__ __forceinline__ std::uint32_t scales(int consumer) const {
    return out(C::kConsumers) + C::kBarrierBytes + consumer * C::Operands::kScaleBytes;
  }
};

/// A place in the ring, and the parity of the ring's current round.
template <int kStages>
struct RingPosition {
  int stage = 0;
  std::uint32_t parity = 0;

  __device__ __forceinline__ void advance() {
    if (++stage == kStages) stage = 0, parity ^= 1;
  }
};

/// One thread of a block: fills the ring.
template <typename C>
__device__ __forceinline__ void produce(const CUtensorMap& weight_map, const CUtensorMap& input_map,
                                        const Schedule& schedule, const SharedMemory<C>& shared, int rank) {
  static_assert(C::kCopiedTokens * C::kFeatureTiles == C::kTokens);
  constexpr std::uint16_t kBothBlocks = 0b11;
  RingPosition<C::kStages> at;
  for (int index = blockIdx.x / kClusterSize; index < schedule.num_units(); index += gridDim.x / kClusterSize) {
    const Tile<C> tile(schedule.unit(index), rank);
    for (int i = 0; i < schedule.num_stages; ++i) {
      shared.emptied(at.stage).wait(at.parity ^ 1);
      const PhaseBarrier filled = shared.filled(at.stage);
      filled.arrive_and_expect(C::kStageBytes);
      const int column = i * C::kTileK, slab = tile.feature_tile * C::kSlabs;
      if constexpr (C::kShares == Shares::kWeight) {
        load_box_to_cluster(shared.weight(at.stage) + rank * C::kCopiedSlabs * kSlabRows * kRowBytes, weight_map,
                            filled, column, slab + rank * C::kCopiedSlabs, kBothBlocks);
        load_box(shared.tokens(at.stage), input_map, filled, column, tile.token);
      } else {
        load_rows_to_cluster(shared.tokens(at.stage) + rank * C::kCopiedTokens * kRowBytes, input_map, filled, column,
                             tile.token + rank * C::kCopiedTokens, kBothBlocks);
        load_box(shared.weight(at.stage), weight_map, filled, column, 0, 0, slab);
      }
      at.advance();
    }
  }
}

/// What a product is added to, on its way into the box from which the result will be stored.
template <typename C>
struct OldValues {
  const CUtensorMap& map;
  std::uint32_t box;
  PhaseBarrier arrived;
  int feature, token;  // of the tile's first box
  std::uint32_t parity = 0;

  /// One thread, the one that stores.
  __device__ __forceinline__ void start(int index) const {
    wait_until_stores_have_read();
    arrived.arrive_and_expect(C::kTokens * C::kBoxRowBytes);
    load_box(box, map, arrived, feature + index * C::kBoxFeatures, token);
  }
  __device__ __forceinline__ void start_tile() const {
    start(0);
#pragma unroll
    for (int b = 1; b < C::kBoxes; ++b) prefetch_box(map, feature + b * C::kBoxFeatures, token);
  }
  __device__ __forceinline__ void wait() {
    arrived.wait(parity);
    parity ^= 1;
  }
};

/// Rounds the sums of some blocks of 64 weight rows, stores them to shared memory as [tokens, features] and from there.
template <typename C>
__device__ __forceinline__ void store_sums(const typename C::Sum (&sums)[C::kBlocks][C::kTokens / 2],
                                           const CUtensorMap& out_map, std::uint32_t box, int consumer, int feature,
                                           int token, OldValues<C>& old_values, std::uint32_t scales) {
  using Operands = typename C::Operands;
  using Epilogue = typename C::Epilogue;
  constexpr int kTokenGroups = C::kTokens / 8;
  const int lane = lane_id(), warp = warp_id() % 4;
  const bool stores = threadIdx.x % kWarpgroup == 0;
  // What the swizzle does to the place of 16 bytes in a row; eight rows are whole periods.
  const int flipped = C::kBoxRowBytes == 128 ? lane % 8 : lane / 2 % 4;
#pragma unroll
  for (int b = 0; b < C::kBoxes; ++b) {
    if constexpr (Epilogue::kAdds) {
      if (b > 0 && stores) old_values.start(b);
      old_values.wait();
    } else {
      if (stores) wait_until_stores_have_read();
    }
    // The box is free, and scales are there.
    if constexpr (!Epilogue::kAdds || Operands::kScaleBytes > 0) {
      sync_threads_at(1 + consumer, kWarpgroup);
    } else {
      __syncwarp();  // a warp loads matrices together
    }
#pragma unroll
    for (int i = 0; i < C::kBoxBlocks; ++i) {
      const int block_index = b * C::kBoxBlocks + i;
      const typename C::Sum(&block)[C::kTokens / 2] = sums[block_index];
      const typename Operands::Scaling scaling(scales, block_index * kBlockRows + warp * kSlabRows + lane / 4);
      std::uint32_t rows[Epilogue::kGroups];
#pragma unroll
      for (int g = 0; g < Epilogue::kGroups; ++g) {
        const int place = (i * 4 + warp) * Epilogue::kGroups + g;
        rows[g] = box + lane * C::kBoxRowBytes + ((place ^ flipped) << 4);
      }
#pragma unroll
      for (int first = 0; first < kTokenGroups; first += 4) {
        std::uint32_t packed[4][Epilogue::kGroups] = {};
        if constexpr (Epilogue::kAdds) {
#pragma unroll
          for (int g = 0; g < Epilogue::kGroups; ++g) {
            const std::uint32_t row = rows[g] + first * 8 * C::kBoxRowBytes;
            if (first + 4 <= kTokenGroups) {
              std::uint32_t matrices[4];
              load_matrices_transposed(matrices, row);
#pragma unroll
              for (int j = 0; j < 4; ++j) packed[j][g] = matrices[j];
            } else {
#pragma unroll
              for (int j = 0; first + j < kTokenGroups; ++j)
                packed[j][g] = load_matrix_transposed(row + j * 8 * C::kBoxRowBytes);
            }
          }
        }
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          if (first + j < kTokenGroups)
            scaling.template finish<Epilogue>(&block[4 * (first + j)], first + j, packed[j]);
        }
#pragma unroll
        for (int g = 0; g < Epilogue::kGroups; ++g) {
          const std::uint32_t row = rows[g] + first * 8 * C::kBoxRowBytes;
          if (first + 4 <= kTokenGroups) {
            const std::uint32_t matrices[4] = {packed[0][g], packed[1][g], packed[2][g], packed[3][g]};
            store_matrices_transposed(row, matrices);
          } else {
#pragma unroll
            for (int j = 0; first + j < kTokenGroups; ++j)  // lanes 0 to 7 name the rows
              store_matrix_transposed(row + j * 8 * C::kBoxRowBytes, packed[j][g]);
          }
        }
      }
    }
    publish_shared_writes();
    sync_threads_at(1 + consumer, kWarpgroup);
    if (stores) {
      store_box(out_map, box, feature + b * C::kBoxFeatures, token);
      commit_stores();
    }
  }
}

/// One warpgroup: multiplies what is in the ring.
template <typename C>
__device__ __forceinline__ void consume(const CUtensorMap& out_map, const Schedule& schedule,
                                        const typename C::Operands::Scales& scales, const SharedMemory<C>& shared,
                                        int rank, int consumer) {
  constexpr int kUnit = 16;  // bytes in which descriptors count
  const auto release = [&](int stage) {
    // Every warp in every block, because a product of the other block's copy may come next.
    if (lane_id() < kClusterSize) shared.emptied(stage).arrive_in_block(static_cast<std::uint32_t>(lane_id()));
  };
  typename C::Sum sums[C::kBlocks][C::kTokens / 2];
  const auto multiply_stage = [&](int stage, bool is_first) {
    const std::uint64_t weight =
        describe_operand(shared.weight(stage) + consumer * C::kBlocks * kBlockRows * kRowBytes);
    const std::uint64_t tokens = describe_operand(shared.tokens(stage));
    begin_products();
#pragma unroll
    for (int step = 0; step < kRowBytes / kStepBytes; ++step) {
      constexpr int kStepUnits = kStepBytes / kUnit, kBlockUnits = kBlockRows * kRowBytes / kUnit;
#pragma unroll
      for (int b = 0; b < C::kBlocks; ++b) {
        C::Operands::template multiply<C::kTokens>(sums[b], weight + b * kBlockUnits + step * kStepUnits,
                                                   tokens + step * kStepUnits, !is_first || step > 0);
      }
    }
    commit_products();
  };

  OldValues<C> old_values{out_map, shared.out(consumer), shared.old_values(consumer)};
  RingPosition<C::kStages> at;
  for (int index = blockIdx.x / kClusterSize; index < schedule.num_units(); index += gridDim.x / kClusterSize) {
    const Tile<C> tile(schedule.unit(index), rank);
    const int feature = tile.feature_tile * C::kFeatures + consumer * C::kConsumerFeatures;
    int previous = at.stage;
    shared.filled(at.stage).wait(at.parity);
    multiply_stage(at.stage, true);
    at.advance();
    if constexpr (C::Epilogue::kAdds) {
      old_values.feature = feature;
      old_values.token = tile.token;
      if (threadIdx.x % kWarpgroup == 0) old_values.start_tile();
      __syncwarp();
    }
    scales.template load<C::kBlocks * kBlockRows, C::kTokens>(
        shared.scales(consumer), (tile.feature_tile * C::kConsumers + consumer) * C::kBlocks * 4, tile.token);
    for (int i = 1; i < schedule.num_stages; ++i) {
      shared.filled(at.stage).wait(at.parity);
      multiply_stage(at.stage, false);
      wait_for_products<1>();
      release(previous);
      previous = at.stage;
      at.advance();
    }
    wait_for_products<0>();
    release(previous);
#pragma unroll
    for (int b = 0; b < C::kBlocks; ++b) keep_sums_here(sums[b]);
    store_sums<C>(sums, out_map, shared.out(consumer), consumer, feature, tile.token, old_values,
                  shared.scales(consumer));
  }
  if (threadIdx.x % kWarpgroup == 0) wait_until_stores_have_read();
}

/// Grid: as many blocks as multiprocessors, in clusters of two.
template <typename C>
__global__ void __launch_bounds__(C::kThreads, 1)
    linear_wgmma_kernel(const __grid_constant__ CUtensorMap weight_map, const __grid_constant__ CUtensorMap input_map,
                        const __grid_constant__ CUtensorMap out_map, const Schedule schedule,
                        const typename C::Operands::Scales scales) {
  if constexpr (kHasWgmma) {
    const std::uint32_t start = shared_address(dynamic_shared());
    const SharedMemory<C> shared{(start + kPattern - 1) / kPattern * kPattern};
    const int rank = static_cast<int>(block_rank_in_cluster());
    if (threadIdx.x == 0) {
      for (int stage = 0; stage < C::kStages; ++stage) {
        shared.filled(stage).init(1);
        shared.emptied(stage).init(kClusterSize * C::kConsumers * kWarpgroup / kWarpSize);
      }
      for (int consumer = 0; consumer < C::kConsumers; ++consumer) shared.old_values(consumer).init(1);
      publish_barriers();
      prefetch_map(weight_map);
      prefetch_map(input_map);
      prefetch_map(out_map);
    }
    sync_cluster();
    wait_for_earlier_kernels();
    const int warpgroup = static_cast<int>(threadIdx.x) / kWarpgroup;
    if (warpgroup == C::kConsumers) {
      shrink_registers<C::kProducerRegisters>();
      if (threadIdx.x % kWarpgroup == 0) produce<C>(weight_map, input_map, schedule, shared, rank);
    } else {
      grow_registers<C::kConsumerRegisters>();
      consume<C>(out_map, schedule, scales, shared, rank, warpgroup);
    }
    __syncwarp();
    sync_cluster();  // the other block may still arrive at barriers here
  }
}

}  // namespace wgmma_sm90
}  // namespace treble::cuda
