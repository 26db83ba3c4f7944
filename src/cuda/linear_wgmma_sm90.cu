#include "cuda/linear_wgmma_sm90.h"

#include <algorithm>
#include <array>

#include "cuda/launch.cuh"
#include "cuda/rows.cuh"
#include "cuda/tensor_map.h"
#include "cuda/tma_sm90.cuh"
#include "cuda/wgmma_sm90.cuh"

// Products of bf16 matrices on Hopper's wgmma, with an epilogue on the sums.
//
// A block takes tiles of weight rows x tokens, one after the other, as many blocks as multiprocessors. A tile's weight
// is the first operand of wgmma and its tokens are the second, because their number may be any multiple of 8 there:
// that lets the tile fit the tokens (choose_wgmma_tile). One warpgroup produces: one thread of it starts the copies of
// 64 features of both operands (a stage) into a ring in shared memory. The others consume: each multiplies 64 weight
// rows, or twice 64, with all tokens of the tile, and runs its own epilogue, so that one's epilogue overlaps with the
// others' products; meanwhile the ring fills for the next tile.
//
// Two blocks are a cluster: neighbours along the tokens, so they need the same weight. Each copies half of it to both.
// A stage is thus free when the consumers of both blocks have read it.
//
// For SwiGLU the weight's rows come as eight rows of gate, the eight of up that belong to them, and so on: one tensor
// map over both matrices has their distance as a stride. A thread then has the sums of gate and up of the same feature.
//
// A product that is added to what its output holds brings the old values into the place in shared memory where the sums
// will be stored: the first box of a tile while it is multiplied, the others to the L2 cache.
//
// Order of tiles: of some pairs of token tiles, whose inputs stay in the L2 cache, all weight tiles, each once.
//
// Limit: 989 TFLOP/s of the tensor cores, 690 at the power limit of an H200.

namespace treble::cuda {
// Not nameless: where a device has no wgmma, nothing refers to what is here.
namespace wgmma_sm90 {

constexpr int kRowBytes = 128;         // of a row of an operand in a stage: a row of the swizzle's pattern
constexpr int kTileK = kRowBytes / 2;  // features in a stage
constexpr int kBlockRows = 64;         // weight rows that one wgmma takes
constexpr int kSlabRows = 16;          // weight rows of one warp of it
constexpr int kClusterSize = 2;
constexpr int kPattern = 1024;  // bytes of the swizzle's pattern
constexpr int kMostSharedBytes = 227 << 10;

constexpr int round_up(int value, int multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// out = silu(gate) up of slabs of eight rows of gate and eight of up.
struct SwigluEpilogue {
  static constexpr int kGroups = 1;  // of eight features that a slab makes
  static constexpr bool kAdds = false;

  /// @param sums  of two tokens: gate, gate, up, up
  static __device__ __forceinline__ void finish(const float* sums, std::uint32_t (&packed)[kGroups]) {
    float products[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float gate = round_to<bfloat16>(sums[i]), up = round_to<bfloat16>(sums[2 + i]);
      // Both approximations are good to 2 units of fp32, far below the rounding that follows.
      products[i] = round_to<bfloat16>(__fdividef(gate, 1.0f + __expf(-gate))) * up;
    }
    packed[0] = pack_bf16(products[0], products[1]);
  }
};

struct PlainEpilogue {
  static constexpr int kGroups = 2;
  static constexpr bool kAdds = false;

  static __device__ __forceinline__ void finish(const float* sums, std::uint32_t (&packed)[kGroups]) {
    packed[0] = pack_bf16(sums[0], sums[1]);
    packed[1] = pack_bf16(sums[2], sums[3]);
  }
};

/// The same, added to the output: one rounding of the whole.
struct AddEpilogue {
  static constexpr int kGroups = 2;
  static constexpr bool kAdds = true;

  /// @param packed  in: the old values; out: the new ones
  static __device__ __forceinline__ void finish(const float* sums, std::uint32_t (&packed)[kGroups]) {
#pragma unroll
    for (int g = 0; g < kGroups; ++g)
      packed[g] = pack_bf16(low_bf16(packed[g]) + sums[2 * g], high_bf16(packed[g]) + sums[2 * g + 1]);
  }
};

/// Sizes that follow from a tile: kConsumers warpgroups of kBlocks times 64 weight rows, times kTokens.
template <int kConsumers_, int kBlocks_, int kTokens_, typename Epilogue_>
struct Config {
  using Epilogue = Epilogue_;
  static constexpr int kConsumers = kConsumers_, kBlocks = kBlocks_, kTokens = kTokens_;
  static constexpr int kRows = kConsumers * kBlocks * kBlockRows;
  static constexpr int kThreads = (kConsumers + 1) * kWarpgroup;
  static constexpr int kSlabs = kRows / kSlabRows;

  static constexpr int kFeatures = kSlabs * 8 * Epilogue::kGroups;  // of the output, in a tile
  static constexpr int kConsumerFeatures = kFeatures / kConsumers;
  static constexpr int kBoxFeatures = std::min(64, kConsumerFeatures);  // in one store
  static constexpr int kBoxes = kConsumerFeatures / kBoxFeatures;
  static constexpr int kBoxBlocks = kBlocks / kBoxes;
  static constexpr int kBoxRowBytes = kBoxFeatures * 2;

  static constexpr int kStageBytes = (kRows + kTokens) * kRowBytes;
  static constexpr int kBoxBytes = round_up(kTokens * kBoxRowBytes, kPattern);
  static constexpr int kOutBytes = kConsumers * kBoxBytes;
  static constexpr int kBarrierBytes = 256;
  static constexpr int kStages = std::min(6, (kMostSharedBytes - kPattern - kBarrierBytes - kOutBytes) / kStageBytes);
  static constexpr int kSharedBytes = kPattern + kStages * kStageBytes + kOutBytes + kBarrierBytes;

  // Of 512 registers for four threads, one in each warpgroup or, with three warpgroups, 504.
  static constexpr int kProducerRegisters = kConsumers == 2 ? 40 : 32;
  static constexpr int kConsumerRegisters = kConsumers == 2 ? 232 : 160;
  static_assert(kRows * kRowBytes % kPattern == 0 && kTokens * kRowBytes % kPattern == 0 && kTokens % 8 == 0);
  static_assert(kStages >= 2 && (2 * kStages + kConsumers) * 8 <= kBarrierBytes);
};

/// Which tiles there are, and their order.
struct Schedule {
  int num_token_pairs;    // of tiles
  int num_feature_tiles;  // along the weight
  int pairs_in_group;     // whose inputs the L2 cache keeps
  int num_stages;         // along the features of the input

  struct Tile {
    int token_pair, feature_tile;
  };
  __device__ __forceinline__ int num_tiles() const { return num_token_pairs * num_feature_tiles; }
  __device__ __forceinline__ Tile tile(int index) const {
    const int group = index / (pairs_in_group * num_feature_tiles);
    const int first_pair = group * pairs_in_group;
    const int width = min(pairs_in_group, num_token_pairs - first_pair);
    const int rest = index - first_pair * num_feature_tiles;
    return {first_pair + rest % width, rest / width};
  }
};

/// Where stages, their barriers and the outputs lie in shared memory.
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
  constexpr int kHalfRows = C::kRows / kClusterSize, kHalfPairs = C::kSlabs / kClusterSize;
  constexpr std::uint16_t kBothBlocks = 0b11;
  RingPosition<C::kStages> at;
  for (int index = blockIdx.x / kClusterSize; index < schedule.num_tiles(); index += gridDim.x / kClusterSize) {
    const Schedule::Tile tile = schedule.tile(index);
    const int token = (tile.token_pair * kClusterSize + rank) * C::kTokens;
    const int slab = tile.feature_tile * C::kSlabs + rank * kHalfPairs;
    for (int i = 0; i < schedule.num_stages; ++i) {
      shared.emptied(at.stage).wait(at.parity ^ 1);
      const PhaseBarrier filled = shared.filled(at.stage);
      filled.arrive_and_expect(C::kStageBytes);
      load_box_to_cluster(shared.weight(at.stage) + rank * kHalfRows * kRowBytes, weight_map, filled, i * kTileK, slab,
                          kBothBlocks);
      load_box(shared.tokens(at.stage), input_map, filled, i * kTileK, token);
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
__device__ __forceinline__ void store_sums(const float (&sums)[C::kBlocks][C::kTokens / 2], const CUtensorMap& out_map,
                                           std::uint32_t box, int consumer, int feature, int token,
                                           OldValues<C>& old_values) {
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
      sync_threads_at(1 + consumer, kWarpgroup);
    }
#pragma unroll
    for (int i = 0; i < C::kBoxBlocks; ++i) {
      const float(&block)[C::kTokens / 2] = sums[b * C::kBoxBlocks + i];
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
          if (first + j < kTokenGroups) Epilogue::finish(&block[4 * (first + j)], packed[j]);
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
                                        const SharedMemory<C>& shared, int rank, int consumer) {
  constexpr int kUnit = 16;   // bytes in which descriptors count
  constexpr int kStepK = 16;  // features that one wgmma takes
  const auto release = [&](int stage) {
    // Every warp in every block, because a product of the other block's copy may come next.
    if (lane_id() < kClusterSize) shared.emptied(stage).arrive_in_block(static_cast<std::uint32_t>(lane_id()));
  };
  float sums[C::kBlocks][C::kTokens / 2];
  const auto multiply_stage = [&](int stage, bool is_first) {
    const std::uint64_t weight =
        describe_operand(shared.weight(stage) + consumer * C::kBlocks * kBlockRows * kRowBytes);
    const std::uint64_t tokens = describe_operand(shared.tokens(stage));
    begin_products();
#pragma unroll
    for (int step = 0; step < kTileK / kStepK; ++step) {
      constexpr int kStepUnits = kStepK * 2 / kUnit, kBlockUnits = kBlockRows * kRowBytes / kUnit;
#pragma unroll
      for (int b = 0; b < C::kBlocks; ++b) {
        Wgmma<C::kTokens>::multiply(sums[b], weight + b * kBlockUnits + step * kStepUnits, tokens + step * kStepUnits,
                                    !is_first || step > 0);
      }
    }
    commit_products();
  };

  OldValues<C> old_values{out_map, shared.out(consumer), shared.old_values(consumer)};
  RingPosition<C::kStages> at;
  for (int index = blockIdx.x / kClusterSize; index < schedule.num_tiles(); index += gridDim.x / kClusterSize) {
    const Schedule::Tile tile = schedule.tile(index);
    const int feature = tile.feature_tile * C::kFeatures + consumer * C::kConsumerFeatures;
    const int token = (tile.token_pair * kClusterSize + rank) * C::kTokens;
    int previous = at.stage;
    shared.filled(at.stage).wait(at.parity);
    multiply_stage(at.stage, true);
    at.advance();
    if constexpr (C::Epilogue::kAdds) {
      old_values.feature = feature;
      old_values.token = token;
      if (threadIdx.x % kWarpgroup == 0) old_values.start_tile();
      __syncwarp();
    }
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
    store_sums<C>(sums, out_map, shared.out(consumer), consumer, feature, token, old_values);
  }
  if (threadIdx.x % kWarpgroup == 0) wait_until_stores_have_read();
}

/// Grid: as many blocks as multiprocessors, in clusters of two.
template <typename C>
__global__ void __launch_bounds__(C::kThreads, 1)
    linear_wgmma_kernel(const __grid_constant__ CUtensorMap weight_map, const __grid_constant__ CUtensorMap input_map,
                        const __grid_constant__ CUtensorMap out_map, const Schedule schedule) {
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
      consume<C>(out_map, schedule, shared, rank, warpgroup);
    }
    __syncwarp();
    sync_cluster();  // the other block may still arrive at barriers here
  }
}

}  // namespace wgmma_sm90

namespace {

using namespace wgmma_sm90;

/// What both kinds of product have in common.
struct Operands {
  std::int64_t num_tokens, in_features, out_features;
  const void* input;
  std::int64_t input_stride;
  const void* weight;
  std::int64_t pair_stride_bytes;  // from eight weight rows to the eight that share a slab with them
  std::int64_t slab_stride_bytes;  // from slab to slab
  std::int64_t num_slabs;
  void* out;
  std::int64_t out_stride;
};

/// Pairs of token tiles whose inputs stay in the L2 cache while weights stream past: half of Hopper's 50 MB.
int pairs_in_group(std::int64_t num_pairs, std::int64_t pair_bytes) {
  constexpr std::int64_t kKeptBytes = std::int64_t{25} << 20;
  const std::int64_t most = std::max<std::int64_t>(1, kKeptBytes / pair_bytes);
  const std::int64_t num_groups = (num_pairs + most - 1) / most;
  return static_cast<int>((num_pairs + num_groups - 1) / num_groups);  // groups of the same size, but for the last
}

template <typename C>
void launch_tiles(std::string_view name, const Operands& of, int num_sms, cudaStream_t stream) {
  using Dimension = BoxedTensor::Dimension;
  constexpr std::int64_t kElement = 2;
  const std::int64_t row_bytes = of.in_features * kElement;
  const std::array<Dimension, 4> weight = {Dimension{of.in_features, 0, kTileK}, Dimension{8, row_bytes, 8},
                                           Dimension{2, of.pair_stride_bytes, 2},
                                           Dimension{of.num_slabs, of.slab_stride_bytes, C::kSlabs / kClusterSize}};
  const std::array<Dimension, 2> input = {Dimension{of.in_features, 0, kTileK},
                                          Dimension{of.num_tokens, of.input_stride * kElement, C::kTokens}};
  const std::array<Dimension, 2> out = {Dimension{of.out_features, 0, C::kBoxFeatures},
                                        Dimension{of.num_tokens, of.out_stride * kElement, C::kTokens}};
  const CUtensorMap weight_map = make_tensor_map({of.weight, weight, CU_TENSOR_MAP_SWIZZLE_128B});
  const CUtensorMap input_map = make_tensor_map({of.input, input, CU_TENSOR_MAP_SWIZZLE_128B});
  const CUtensorMap out_map =
      make_tensor_map({of.out, out, C::kBoxRowBytes == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B});

  const std::int64_t pair_tokens = kClusterSize * C::kTokens;
  const std::int64_t num_pairs = (of.num_tokens + pair_tokens - 1) / pair_tokens;
  const Schedule schedule{.num_token_pairs = static_cast<int>(num_pairs),
                          .num_feature_tiles = static_cast<int>((of.num_slabs + C::kSlabs - 1) / C::kSlabs),
                          .pairs_in_group = pairs_in_group(num_pairs, pair_tokens * row_bytes),
                          .num_stages = static_cast<int>((of.in_features + kTileK - 1) / kTileK)};
  const std::int64_t num_clusters =
      std::min<std::int64_t>(std::max(1, num_sms / kClusterSize), num_pairs * schedule.num_feature_tiles);
  launch(name, stream,
         {.grid = dim3(static_cast<unsigned>(num_clusters * kClusterSize)),
          .num_threads = C::kThreads,
          .shared_bytes = C::kSharedBytes,
          .cluster_size = kClusterSize,
          .starts_early = true},
         linear_wgmma_kernel<C>, weight_map, input_map, out_map, schedule);
}

template <typename Epilogue>
void launch_with(std::string_view name, const Operands& of, WgmmaTile tile, int num_sms, cudaStream_t stream) {
  switch (tile) {
    case WgmmaTile::k256x192:
      return launch_tiles<Config<2, 2, 192, Epilogue>>(name, of, num_sms, stream);
    case WgmmaTile::k256x160:
      return launch_tiles<Config<2, 2, 160, Epilogue>>(name, of, num_sms, stream);
    case WgmmaTile::k256x128:
      return launch_tiles<Config<2, 2, 128, Epilogue>>(name, of, num_sms, stream);
    case WgmmaTile::k192x152:
      return launch_tiles<Config<3, 1, 152, Epilogue>>(name, of, num_sms, stream);
    case WgmmaTile::k128x256:
      return launch_tiles<Config<2, 1, 256, Epilogue>>(name, of, num_sms, stream);
  }
}

}  // namespace

void swiglu_wgmma_sm90(const SwigluProduct& product, WgmmaTile tile, int num_sms, cudaStream_t stream) {
  if (product.num_tokens == 0 || product.out_features == 0) return;
  const auto* gate = static_cast<const std::byte*>(product.gate);
  launch_with<SwigluEpilogue>("linear_swiglu_wgmma_sm90",
                              {.num_tokens = product.num_tokens,
                               .in_features = product.in_features,
                               .out_features = product.out_features,
                               .input = product.input,
                               .input_stride = product.input_stride,
                               .weight = gate,
                               .pair_stride_bytes = static_cast<const std::byte*>(product.up) - gate,
                               .slab_stride_bytes = 8 * product.in_features * 2,
                               .num_slabs = product.out_features / 8,
                               .out = product.out,
                               .out_stride = product.out_stride},
                              tile, num_sms, stream);
}

void linear_wgmma_sm90(const PlainProduct& product, WgmmaTile tile, int num_sms, cudaStream_t stream) {
  if (product.num_tokens == 0 || product.out_features == 0) return;
  const std::int64_t eight_rows = 8 * product.in_features * 2;
  const Operands operands = {.num_tokens = product.num_tokens,
                             .in_features = product.in_features,
                             .out_features = product.out_features,
                             .input = product.input,
                             .input_stride = product.input_stride,
                             .weight = product.weight,
                             .pair_stride_bytes = eight_rows,
                             .slab_stride_bytes = 2 * eight_rows,
                             .num_slabs = product.out_features / kSlabRows,
                             .out = product.out,
                             .out_stride = product.out_stride};
  if (product.adds) return launch_with<AddEpilogue>("linear_add_wgmma_sm90", operands, tile, num_sms, stream);
  launch_with<PlainEpilogue>("linear_wgmma_sm90", operands, tile, num_sms, stream);
}

}  // namespace treble::cuda
