#include "cuda/delta_rule_chunks_sm80.cuh"
#include "cuda/delta_rule_intrinsics_sm90.cuh"
#include "cuda/launch.cuh"

// Second kernel of the chunked gated delta rule on Hopper's wgmma: a block walks along the chunks of one sequence for
// 64 or 128 value features of one head. One warp copies: a chunk's matrices as the first kernel left them, and its
// values, into a ring of three stages. Each of one or two warpgroups takes 64 value features, which are the rows of all
// its products: its part of S^T [64, 128] stays in fp32 registers from the first chunk to the last, sums become left
// operands without leaving the registers, right operands lie in shared memory. Products are asynchronous, and those
// that the next chunk does not wait for (Q S, P~ U) run while sums are rounded for those that it does. Limit: the chain
// K S, U, update of a chunk with its roundings; with two warpgroups, the tensor cores.

namespace treble::cuda::delta_rule {
namespace {

constexpr int kStages = 3;
constexpr int kAlignment = 1024;  // of tiles

/// A chunk in shared memory.
template <int kConsumers>
struct alignas(kAlignment) Stage {
  std::uint16_t rows[kRowsTiles * kTile];           // half: K, Q
  std::uint16_t triangles[kTriangleTiles * kTile];  // half: T~, P~
  bfloat16 values[kConsumers][kTile];
  float gates[2 * kChunk];
};

template <int kConsumers>
struct Shared {
  Stage<kConsumers> stages[kStages];
  bfloat16 results[kConsumers][kTile];
  PhaseBarrier full[kStages], empty[kStages];
};

/// One warp copies. Where two warpgroups compute, it has a warpgroup to itself, which gives up its registers to them.
constexpr int num_threads(int num_consumers) {
  return num_consumers == 1 ? kWarpgroup + kWarpSize : (num_consumers + 1) * kWarpgroup;
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

constexpr int kTokenTiles = kChunk / 8, kKeyTiles = kKeyDim / 8;
constexpr int kStepBytes = 32;  // 16 halfs of a row: what one product takes
// Of the 504 registers that three warpgroups can have for a thread of each.
constexpr int kCopyRegisters = 40, kComputeRegisters = 232;

/// What a block works on.
struct Place {
  int head, key_head, first_feature;
  std::int64_t first_chunk, first_token;
  int num_chunks, num_tokens;
};

/// By the copying warp.
template <int kConsumers>
__device__ void copy_chunks(const Operands& args, const Place& place, Shared<kConsumers>& shared) {
  using Stage = Stage<kConsumers>;
  constexpr int kPieces = kValueBlock / 8;  // of 16 bytes in a row
  for (int i = 0; i < place.num_chunks; ++i) {
    const int s = i % kStages;
    Stage& stage = shared.stages[s];
    PhaseBarrier& full = shared.full[s];
    if (i >= kStages) shared.empty[s].wait((i / kStages - 1) % 2);
    const std::int64_t chunk = place.first_chunk + i;
    if (lane_id() == 0) {
      full.arrive_and_expect(sizeof(stage.rows) + sizeof(stage.triangles) + sizeof(stage.gates));
      const std::int64_t item = chunk * args.num_v_heads + place.head;
      copy_range(stage.rows, args.matrices.rows + (chunk * args.num_k_heads + place.key_head) * kRowsTiles * kTile,
                 sizeof(stage.rows), full);
      copy_range(stage.gates, args.matrices.gates + item * 2 * kChunk, sizeof(stage.gates), full);
      copy_range(stage.triangles, args.matrices.triangles + item * kTriangleTiles * kTile, sizeof(stage.triangles),
                 full);
    }
    const std::int64_t first_token = place.first_token + static_cast<std::int64_t>(i) * kChunk;
    const int num_tokens = min(kChunk, place.num_tokens - i * kChunk);
    // Rows past the sequence's end are zeros: T~ takes nothing of them, but 0 times NaN is NaN.
#pragma unroll
    for (int c = 0; c < kConsumers; ++c) {
#pragma unroll 8
      for (int e = lane_id(); e < kChunk * kPieces; e += kWarpSize) {
        const int row = e / kPieces, column = e % kPieces * 8;
        const bool is_there = row < num_tokens;
        copy_async(stage.values[c] + tile_at(row, column),
                   args.value.row(first_token + (is_there ? row : 0), place.head) + place.first_feature +
                       c * kValueBlock + column,
                   is_there);
      }
    }
    full.arrive_after_copies();
  }
}

/// Sums [64, 64] of this warpgroup, 16 rows of this warp, as left operands.
__device__ __forceinline__ void to_operands(const float (&sums)[4 * kTokenTiles],
                                            std::uint32_t (&operands)[kChunk / 16][4]) {
#pragma unroll
  for (int k = 0; k < kChunk / 16; ++k) to_operand(sums + 8 * k, sums + 8 * k + 4, operands[k]);
}

/// sums [64, tokens i] (+)= rows [64, tokens j] triangle [i, j]^T
__device__ __forceinline__ void multiply_triangle(const std::uint32_t (&rows)[kChunk / 16][4],
                                                  const std::uint16_t* triangle, bool adds,
                                                  float (&sums)[4 * kTokenTiles]) {
  const std::uint64_t operand = describe_operand(triangle);
#pragma unroll
  for (int k = 0; k < kChunk / 16; ++k) multiply_64(sums, rows[k], operand + k * (kStepBytes >> 4), adds || k > 0);
}

/// sums [64, tokens] = S^T [64, 128] rows [tokens, 128]^T, rows being K or Q
__device__ __forceinline__ void multiply_rows(const std::uint32_t (&state)[kKeyDim / 16][4], const std::uint16_t* rows,
                                              float (&sums)[4 * kTokenTiles]) {
  const std::uint64_t operand = describe_operand(rows);
  constexpr int kSteps = kChunk / 16;  // in a tile
#pragma unroll
  for (int k = 0; k < kKeyDim / 16; ++k) {
    multiply_64(sums, state[k], operand + k / kSteps * (kTile * 2 >> 4) + k % kSteps * (kStepBytes >> 4), k > 0);
  }
}

/// Rounds results^T [16, tokens] of this warp and stores them; the warp's columns of `staging` are its own.
__device__ __forceinline__ void store_results(const Operands& args, const Place& place, int chunk,
                                              const float (&results)[4 * kTokenTiles], int first_feature,
                                              bfloat16* staging) {
  const int lane = lane_id(), own = 16 * (warp_id() % 4);
  sync_warp();  // what it held before is stored
#pragma unroll
  for (int n = 0; n < kTokenTiles; n += 2) {
    const float* sums = results + 4 * n;
    const std::uint32_t packed[4] = {pack_bf16(sums[0], sums[1]), pack_bf16(sums[2], sums[3]),
                                     pack_bf16(sums[4], sums[5]), pack_bf16(sums[6], sums[7])};
    store_matrices_transposed(packed, staging + tile_at((n + lane / 16) * 8 + lane % 8, own + lane / 8 % 2 * 8));
  }
  sync_warp();
  const std::int64_t first_token = place.first_token + static_cast<std::int64_t>(chunk) * kChunk;
  const int num_tokens = min(kChunk, place.num_tokens - chunk * kChunk);
  constexpr int kCopies = 2;  // of 16 bytes: the 16 features of a warp
#pragma unroll
  for (int i = 0; i < kChunk * kCopies / kWarpSize; ++i) {
    const int token = (i * kWarpSize + lane) / kCopies, feature = own + lane % kCopies * 8;
    if (token < num_tokens) {
      bfloat16* to = args.out.row(first_token + token, place.head) + first_feature + feature;
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(staging + tile_at(token, feature));
    }
  }
}

/// Calls body(element of the stored state, element in registers).
template <typename Body>
__device__ __forceinline__ void for_state(const Operands& args, const Place& place, int sequence, int first_feature,
                                          float (&state)[4 * kKeyTiles], const Body& body) {
  float* stored = args.state + sequence * args.state_strides[0] + place.head * args.state_strides[1] + first_feature +
                  16 * (warp_id() % 4) + lane_id() / 4;
#pragma unroll
  for (int n = 0; n < kKeyTiles; ++n) {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const int key_feature = n * 8 + lane_id() % 4 * 2 + c % 2;
      body(stored[key_feature * args.state_strides[2] + c / 2 * 8], state[4 * n + c]);
    }
  }
}

/// By a warpgroup. The comments name the products that are under way.
template <int kConsumers>
__device__ __forceinline__ void run_chunks(const Operands& args, const Place& place, int sequence,
                                           Shared<kConsumers>& shared) {
  const int consumer = warp_id() / 4, lane = lane_id(), own = 16 * (warp_id() % 4);
  const int first_feature = place.first_feature + consumer * kValueBlock;
  bfloat16* staging = shared.results[consumer];

  float state[4 * kKeyTiles] = {};
  if (args.state) {
    for_state(args, place, sequence, first_feature, state, [](const float& stored, float& mine) { mine = stored; });
  }
  for (int i = 0; i < place.num_chunks; ++i) {
    const int s = i % kStages;
    Stage<kConsumers>& stage = shared.stages[s];
    const std::uint16_t* key = stage.rows;
    const std::uint16_t* query = stage.rows + 2 * kTile;
    const std::uint16_t* solve = stage.triangles;
    const std::uint16_t* mix = stage.triangles + kTile;

    std::uint32_t left_state[kKeyDim / 16][4];
#pragma unroll
    for (int k = 0; k < kKeyDim / 16; ++k) to_operand(state + 8 * k, state + 8 * k + 4, left_state[k]);
    shared.full[s].wait(i / kStages % 2);

    float reads[4 * kTokenTiles], out[4 * kTokenTiles];  // (K S)^T, (Q S)^T
    begin_products();
    multiply_rows(left_state, key, reads);
    commit_products();

    begin_products();
    multiply_rows(left_state, query, out);
    commit_products();

    std::uint32_t values[kTokenTiles / 2][4];  // of two tiles: features of the lower and the upper half of the rows
#pragma unroll
    for (int n = 0; n < kTokenTiles; n += 2) {
      load_matrices_transposed(
          values[n / 2], stage.values[consumer] + tile_at(n * 8 + lane / 16 * 8 + lane % 8, own + lane / 8 % 2 * 8));
    }
    float2 decays[kTokenTiles];
#pragma unroll
    for (int n = 0; n < kTokenTiles; ++n)
      decays[n] = *reinterpret_cast<const float2*>(stage.gates + n * 8 + lane % 4 * 2);
    const float whole_decay = stage.gates[kChunk - 1];

    wait_for_products<1>();  // Q S
    keep_sums_here(reads);
    // W^T = V^T - exp(G) (K S)^T; a column is a token.
#pragma unroll
    for (int n = 0; n < kTokenTiles; ++n) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::uint32_t pair = values[n / 2][n % 2 * 2 + half];
        float* read = reads + 4 * n + 2 * half;
        read[0] = low_bf16(pair) - decays[n].x * read[0];
        read[1] = high_bf16(pair) - decays[n].y * read[1];
      }
    }
    std::uint32_t left[kChunk / 16][4];
    to_operands(reads, left);
    float writes[4 * kTokenTiles];  // U^T
    begin_products();
    multiply_triangle(left, solve, false, writes);
    commit_products();

    // Q S, U
#pragma unroll
    for (int e = 0; e < 4 * kKeyTiles; ++e) state[e] *= whole_decay;
    wait_for_products<1>();  // U
    keep_sums_here(out);
#pragma unroll
    for (int n = 0; n < kTokenTiles; ++n) {
      const float low = args.scale * decays[n].x, high = args.scale * decays[n].y;
      out[4 * n] *= low, out[4 * n + 1] *= high;
      out[4 * n + 2] *= low, out[4 * n + 3] *= high;
    }
#pragma unroll
    for (int n = 0; n < kTokenTiles; ++n)
      decays[n] = *reinterpret_cast<const float2*>(stage.gates + kChunk + n * 8 + lane % 4 * 2);
    wait_for_products<0>();
    keep_sums_here(writes);

    // out^T += U^T P~^T, and S'^T = exp(G_last) S^T + (U exp(G_last - G))^T K
    to_operands(writes, left);
    begin_products();
    multiply_triangle(left, mix, true, out);
    commit_products();
    std::uint32_t left_update[kChunk / 16][4];
#pragma unroll
    for (int k = 0; k < kChunk / 16; ++k) {
      float decayed[8];
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float2 decay = decays[2 * k + e / 4];
        decayed[e] = writes[8 * k + e] * (e % 2 == 0 ? decay.x : decay.y);
      }
      to_operand(decayed, decayed + 4, left_update[k]);
    }
    begin_products();
    const std::uint64_t key_transposed = describe_operand(key, kTile * 2);
#pragma unroll
    for (int k = 0; k < kChunk / 16; ++k)
      multiply_128_transposed(state, left_update[k], key_transposed + k * (16 * kChunk * 2 >> 4));
    commit_products();

    wait_for_products<1>();  // the update
    keep_sums_here(out);
    store_results(args, place, i, out, first_feature, staging);
    wait_for_products<0>();
    keep_sums_here(state);
    if (lane == 0) shared.empty[s].arrive();
  }
  if (args.state) {
    for_state(args, place, sequence, first_feature, state, [](float& stored, const float& mine) { stored = mine; });
  }
}

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

/// Grid: sequences, heads, blocks of 64 kConsumers value features.
template <int kConsumers>
__global__ void __launch_bounds__(num_threads(kConsumers), 1) chunk_states_wgmma_kernel(Operands args) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL  // wgmma is not part of newer devices, nor of PTX for them
  const std::uint32_t start = shared_address(dynamic_shared());
  auto& shared =
      *reinterpret_cast<Shared<kConsumers>*>(dynamic_shared() + (kAlignment - start % kAlignment) % kAlignment);
  wait_for_earlier_kernels();
  const Sequence sequence = args.sequences[blockIdx.x];
  const int head = static_cast<int>(blockIdx.y);
  const Chunk first = args.chunks[sequence.first_chunk];
  const Chunk last = args.chunks[sequence.first_chunk + sequence.num_chunks - 1];
  const Place place{head,
                    head / args.sharing,
                    static_cast<int>(blockIdx.z) * kConsumers * kValueBlock,
                    sequence.first_chunk,
                    first.first_token,
                    sequence.num_chunks,
                    last.first_token + last.num_tokens - first.first_token};
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      shared.full[s].init(kWarpSize + 1);  // the lanes' values, and the ranges
      shared.empty[s].init(kConsumers * 4);
    }
    publish_barriers();
  }
  sync_block();
  if (warp_id() >= kConsumers * 4) {
    if constexpr (kConsumers > 1) shrink_registers<kCopyRegisters>();
    if (warp_id() == kConsumers * 4) copy_chunks(args, place, shared);
  } else {
    if constexpr (kConsumers > 1) grow_registers<kComputeRegisters>();
    run_chunks(args, place, sequence.index, shared);
  }
#endif
}

template <int kConsumers>
void launch_kernel(cudaStream_t stream, const Operands& args, std::int64_t num_seqs, std::int64_t value_dim) {
  launch("delta_rule: chunk states", stream,
         {.grid = dim3(blocks_for(num_seqs, 1), static_cast<unsigned>(args.num_v_heads),
                       blocks_for(value_dim, kConsumers * kValueBlock)),
          .num_threads = num_threads(kConsumers),
          .shared_bytes = sizeof(Shared<kConsumers>) + kAlignment,
          .starts_early = true},
         chunk_states_wgmma_kernel<kConsumers>, args);
}

}  // namespace

void run_chunk_states_wgmma(cudaStream_t stream, const Operands& args, std::int64_t num_seqs, std::int64_t value_dim,
                            int num_warpgroups) {
  if (num_warpgroups == 2) {
    launch_kernel<2>(stream, args, num_seqs, value_dim);
  } else {
    launch_kernel<1>(stream, args, num_seqs, value_dim);
  }
}

}  // namespace treble::cuda::delta_rule
