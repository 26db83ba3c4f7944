#pragma once

#include <algorithm>
#include <cstdint>

#include "cuda/nf4_lookup.cuh"
#include "cuda/nf4_product.h"
#include "cuda/wgmma_bf16_sm90.cuh"
#include "cuda/wgmma_product_sm90.cuh"

// Products of bf16 tokens with weights of 4-bit codes on Hopper's wgmma. What consumers do is what they do for bf16
// (wgmma_product_sm90.cuh), with the same digits: the weight lies in a stage as bf16, because producers wrote it there.
//
// A stage is 64 features, one block of a row. Every weight row of a tile has a thread that decodes it: 32 bytes of
// codes from a small ring that a tensor map fills, the block's scale, and 128 bytes to the stage. Two blocks of a
// cluster are neighbours along the weight and share the tokens, so that no weight is decoded twice for the same tokens.
// A weight is decoded again for every tile of tokens: 3.4 instructions for as many multiplications as the tile has
// tokens.

namespace treble::cuda {
namespace wgmma_sm90 {

template <int kConsumers_, int kBlocks_, int kTokens_, typename Epilogue_>
struct Nf4Config : Config<Bf16Operands, kConsumers_, kBlocks_, kTokens_, Shares::kTokens, Epilogue_> {
  using Base = Config<Bf16Operands, kConsumers_, kBlocks_, kTokens_, Shares::kTokens, Epilogue_>;
  static constexpr int kProducerWarps = Base::kRows / kWarpSize;
  static constexpr int kProducers = Base::kRows / kWarpgroup;  // warpgroups
  static constexpr int kThreads = (Base::kConsumers + kProducers) * kWarpgroup;

  static constexpr int kCodeRowBytes = 32, kCodeStages = 3;
  static constexpr int kCodeStageBytes = Base::kRows * kCodeRowBytes;
  static constexpr int kTableBytes = (256 + 16) * 4;  // nested values and code values of a weight
  static constexpr int kOtherBytes =
      Base::kOtherBytes + kCodeStages * kCodeStageBytes + Nf4Weights::kMost * kTableBytes;
  static constexpr int kStages = std::min(Base::kMostStages, (kMostSharedBytes - kOtherBytes) / Base::kStageBytes);
  static constexpr int kSharedBytes = kStages * Base::kStageBytes + kOtherBytes;

  // Of 504 registers for three threads, one in each warpgroup, or 512 for four.
  static constexpr int kProducerRegisters = kProducers == 1 ? 136 : 64;
  static constexpr int kConsumerRegisters = kProducers == 1 ? 184 : 192;
  static_assert(Base::kConsumers == 2 && Base::kRows == kProducers * kWarpgroup);
  static_assert(kStages >= 2 && (2 * kStages + Base::kConsumers + 2 * kCodeStages) * 8 <= Base::kBarrierBytes);
};

/// What a kernel needs of the weights beside their codes.
struct Nf4Layout {
  Nf4Scales scales[Nf4Weights::kMost];
  int num_weights;
  bool is_pair;  // slabs have eight rows of each of two weights
  int num_slabs;
  int nested_block_shift;
};

/// The parts of shared memory that only codes need.
template <typename C>
struct CodeMemory {
  SharedMemory<C> shared;

  __device__ __forceinline__ std::uint32_t codes(int stage) const {
    return shared.scales(0) + stage * C::kCodeStageBytes;
  }
  __device__ __forceinline__ std::uint32_t table(int weight) const {
    return codes(C::kCodeStages) + weight * C::kTableBytes;
  }
  __device__ __forceinline__ PhaseBarrier filled(int stage) const {
    return {shared.old_values(C::kConsumers).address + 8 * stage};
  }
  __device__ __forceinline__ PhaseBarrier emptied(int stage) const { return filled(C::kCodeStages + stage); }
};

__device__ __forceinline__ uint4 load_shared(std::uint32_t from) {
  uint4 v;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(from)
               : "memory");
  return v;
}
__device__ __forceinline__ void store_shared(std::uint32_t to, const uint4& v) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

/// One thread of a block: starts the copies of codes, ahead of who decodes them.
template <typename C>
class CodeLoader {
 public:
  __device__ __forceinline__ CodeLoader(const CUtensorMap& map, const Schedule& schedule, const CodeMemory<C>& memory,
                                        int rank)
      : map_(map), schedule_(schedule), memory_(memory), rank_(rank), index_(blockIdx.x / kClusterSize) {}

  __device__ __forceinline__ void start_next() {
    if (index_ >= schedule_.num_units()) return;
    memory_.emptied(at_.stage).wait(at_.parity ^ 1);
    const PhaseBarrier filled = memory_.filled(at_.stage);
    filled.arrive_and_expect(C::kCodeStageBytes);
    const Tile<C> tile(schedule_.unit(index_), rank_);
    load_box(memory_.codes(at_.stage), map_, filled, step_ * C::kCodeRowBytes, 0, 0, tile.feature_tile * C::kSlabs);
    at_.advance();
    if (++step_ == schedule_.num_stages) step_ = 0, index_ += gridDim.x / kClusterSize;
  }

 private:
  const CUtensorMap& map_;
  const Schedule& schedule_;
  const CodeMemory<C>& memory_;
  int rank_, index_, step_ = 0;
  RingPosition<C::kCodeStages> at_;
};

/// The scales of a thread's row, block after block.
template <typename C>
class RowScales {
 public:
  static constexpr int kAhead = 8;  // scales that are read at once

  __device__ __forceinline__ RowScales(const Nf4Layout& layout, const CodeMemory<C>& memory, int slab, int row,
                                       int blocks_in_row) {
    slab = min(slab, layout.num_slabs - 1);  // rows beyond the last are decoded, but not stored
    int weight = 0, weight_row = 0;
    if (layout.is_pair) {
      weight = row / 8 % 2;
      weight_row = slab * 8 + row % 8;
    } else {
      weight_row = slab * kSlabRows + row % kSlabRows;
      while (weight + 1 < layout.num_weights && weight_row >= layout.scales[weight].out_features)
        weight_row -= layout.scales[weight++].out_features;
    }
    const Nf4Scales& scales = layout.scales[weight];
    absmax_ = scales.absmax;
    nested_absmax_ = scales.nested_absmax;
    offset_ = scales.nested_offset;
    shift_ = layout.nested_block_shift;
    block_ = weight_row * blocks_in_row;
    end_ = block_ + blocks_in_row;
    table_ = memory.table(weight);
    prefetch();
  }

  /// Of the next block of the row; every kAhead-th call reads memory that was asked for kAhead calls before.
  __device__ __forceinline__ float next() {
    if (left_ == 0) {
      codes_ = next_codes_, nested_ = next_nested_, left_ = kAhead;
      prefetch();
    }
    const std::uint32_t code = codes_.x & 0xff;
    codes_.x = __funnelshift_r(codes_.x, codes_.y, 8);
    codes_.y >>= 8;
    --left_;
    return add_rounded(multiply_rounded(load_float(table_ + code * 4), nested_), offset_);
  }
  /// [16], in shared memory.
  __device__ __forceinline__ std::uint32_t code_values() const { return table_ + 256 * 4; }

 private:
  __device__ __forceinline__ void prefetch() {
    if (block_ >= end_) return;
    next_codes_ = *reinterpret_cast<const uint2*>(absmax_ + block_);
    next_nested_ = nested_absmax_[block_ >> shift_];
    block_ += kAhead;
  }

  const std::uint8_t* absmax_;
  const float* nested_absmax_;
  float offset_, nested_, next_nested_;
  int shift_, left_ = 0;
  int block_, end_;  // that are read next; of the row
  std::uint32_t table_;
  uint2 codes_, next_codes_;
};

/// A producing thread: decodes one row of the weight, and perhaps starts the copies.
template <typename C>
__device__ __forceinline__ void produce_from_codes(CodeLoader<C>& loader, const CUtensorMap& input_map,
                                                   const Schedule& schedule, const Nf4Layout& layout,
                                                   const CodeMemory<C>& memory, int rank, int row) {
  constexpr std::uint16_t kBothBlocks = 0b11;
  const SharedMemory<C>& shared = memory.shared;
  RingPosition<C::kStages> at;
  RingPosition<C::kCodeStages> codes_at;
  const bool loads = row == 0;
  bool is_first = true;
  for (int index = blockIdx.x / kClusterSize; index < schedule.num_units(); index += gridDim.x / kClusterSize) {
    const Tile<C> tile(schedule.unit(index), rank);
    RowScales<C> scales(layout, memory, tile.feature_tile * C::kSlabs + row / kSlabRows, row, schedule.num_stages);
    for (int i = 0; i < schedule.num_stages; ++i) {
      if (loads) {
        if (!is_first) loader.start_next();  // where the codes of the step before were
        shared.emptied(at.stage).wait(at.parity ^ 1);
        const PhaseBarrier filled = shared.filled(at.stage);
        // Where half a tile is no multiple of eight tokens, both blocks copy those in the middle.
        filled.arrive_and_expect(kClusterSize * C::kCopiedTokens * kRowBytes);
        const int first = rank * (C::kTokens - C::kCopiedTokens);
        load_rows_to_cluster(shared.tokens(at.stage) + first * kRowBytes, input_map, filled, i * C::kTileK,
                             tile.token + first, kBothBlocks);
      }
      is_first = false;
      __syncwarp();
      memory.filled(codes_at.stage).wait(codes_at.parity);
      const std::uint32_t from = memory.codes(codes_at.stage) + row * C::kCodeRowBytes;
      const uint4 codes[2] = {load_shared(from), load_shared(from + 16)};
      const float scale = scales.next();
      __syncwarp();
      if (lane_id() == 0) memory.emptied(codes_at.stage).arrive();
      codes_at.advance();
      float4 values[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const uint4 bits = load_shared(scales.code_values() + j * 16);
        values[j] = make_float4(float_of(bits.x), float_of(bits.y), float_of(bits.z), float_of(bits.w));
      }
      const Nf4Lookup lookup(values, scale);
      shared.emptied(at.stage).wait(at.parity ^ 1);
      const std::uint32_t to = shared.weight(at.stage) + row * kRowBytes;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::uint32_t words[4] = {codes[half].x, codes[half].y, codes[half].z, codes[half].w};
#pragma unroll
        for (int j = 0; j < 4; ++j)  // where the swizzle has 16 bytes of a row
          store_shared(to + (((half * 4 + j) ^ (row % 8)) << 4), lookup.weights(words[j]));
      }
      publish_shared_writes();
      __syncwarp();
      if (lane_id() == 0) shared.filled(at.stage).arrive();
      at.advance();
    }
  }
}

/// Grid: as many blocks as multiprocessors, in clusters of two.
template <typename C>
__global__ void __launch_bounds__(C::kThreads, 1)
    linear_nf4_wgmma_kernel(const __grid_constant__ CUtensorMap codes_map,
                            const __grid_constant__ CUtensorMap input_map, const __grid_constant__ CUtensorMap out_map,
                            const Schedule schedule, const __grid_constant__ Nf4Layout layout) {
  if constexpr (kHasWgmma) {
    const std::uint32_t start = shared_address(dynamic_shared());
    const CodeMemory<C> memory{{(start + kPattern - 1) / kPattern * kPattern}};
    const SharedMemory<C>& shared = memory.shared;
    const int rank = static_cast<int>(block_rank_in_cluster());
    if (threadIdx.x == 0) {
      for (int stage = 0; stage < C::kStages; ++stage) {
        shared.filled(stage).init(1 + C::kProducerWarps);
        shared.emptied(stage).init(kClusterSize * C::kConsumers * kWarpgroup / kWarpSize);
      }
      for (int consumer = 0; consumer < C::kConsumers; ++consumer) shared.old_values(consumer).init(1);
      for (int stage = 0; stage < C::kCodeStages; ++stage) {
        memory.filled(stage).init(1);
        memory.emptied(stage).init(C::kProducerWarps);
      }
      publish_barriers();
      prefetch_map(codes_map);
      prefetch_map(input_map);
      prefetch_map(out_map);
    }
    for (int weight = 0; weight < layout.num_weights; ++weight) {
      const Nf4Scales& scales = layout.scales[weight];
      for (int i = static_cast<int>(threadIdx.x); i < 256 + 16; i += C::kThreads)
        store_float(memory.table(weight) + i * 4, i < 256 ? scales.nested_values[i] : scales.code_values[i - 256]);
    }
    sync_cluster();
    const int warpgroup = static_cast<int>(threadIdx.x) / kWarpgroup;
    if (warpgroup >= C::kConsumers) {
      shrink_registers<C::kProducerRegisters>();
      const int row = static_cast<int>(threadIdx.x) - C::kConsumers * kWarpgroup;
      CodeLoader<C> loader(codes_map, schedule, memory, rank);
      if (row == 0) {
        for (int i = 0; i < C::kCodeStages; ++i) loader.start_next();  // no kernel writes codes
      }
      __syncwarp();
      wait_for_earlier_kernels();
      produce_from_codes<C>(loader, input_map, schedule, layout, memory, rank, row);
    } else {
      grow_registers<C::kConsumerRegisters>();
      wait_for_earlier_kernels();
      consume<C>(out_map, schedule, {}, shared, rank, warpgroup);
    }
    __syncwarp();
    sync_cluster();  // the other block may still arrive at barriers here
  }
}

}  // namespace wgmma_sm90
}  // namespace treble::cuda
