#include "cuda/delta_rule_chunks_sm80.cuh"
#include "cuda/launch.cuh"

// Second kernel of the chunked gated delta rule: a block walks along the chunks of one sequence for 64 value features
// of one head. Everything is transposed, so that value features are the rows of every product: a warp keeps 16 of them,
// its part of S^T [16, 128] stays in fp32 registers from the first chunk to the last, and the sums of one product
// become the left operand of the next without leaving the registers. Right operands come from shared memory: K serves K
// S as it lies, and the update of the state transposed. Limit: the chain of dependent products of a chunk.

namespace treble::cuda::delta_rule {
namespace {

constexpr int kTokenTiles = kChunk / 8, kKeyTiles = kKeyDim / 8;
constexpr int kPiece = 8;  // elements in 16 bytes

/// A chunk in shared memory: tiles as the first kernel leaves them.
struct Stage {
  std::uint16_t key[2 * kTile], query[2 * kTile];  // half
  std::uint16_t solve[kTile], mix[kTile];          // half
  std::uint16_t value[kTile];                      // bf16; then the results
  float gates[2 * kChunk];
};

/// What a block works on.
struct Place {
  int head, key_head, first_feature;
};

/// @tparam kCount  16-byte pieces that the block copies
template <int kCount, typename T>
__device__ __forceinline__ void copy_pieces(T* to, const T* from) {
  constexpr int kElements = 16 / sizeof(T);
  for (int i = static_cast<int>(threadIdx.x); i < kCount; i += kThreads)
    copy_async(to + i * kElements, from + i * kElements);
}

__device__ void start_copies(const Operands& args, const Place& place, std::int64_t chunk_index, Stage& stage) {
  const Chunk chunk = args.chunks[chunk_index];
  const std::uint16_t* rows =
      args.matrices.rows + (chunk_index * args.num_k_heads + place.key_head) * kRowsTiles * kTile;
  copy_pieces<2 * kTile / kPiece>(stage.key, rows);
  copy_pieces<2 * kTile / kPiece>(stage.query, rows + 2 * kTile);
  const std::int64_t item = chunk_index * args.num_v_heads + place.head;
  const std::uint16_t* triangles = args.matrices.triangles + item * kTriangleTiles * kTile;
  copy_pieces<kTile / kPiece>(stage.solve, triangles);
  copy_pieces<kTile / kPiece>(stage.mix, triangles + kTile);
  copy_pieces<2 * kChunk / 4>(stage.gates, args.matrices.gates + item * 2 * kChunk);
  constexpr int kPieces = kValueBlock / kPiece;  // of a row
  for (int i = static_cast<int>(threadIdx.x); i < kChunk * kPieces; i += kThreads) {
    const int row = i / kPieces, column = i % kPieces * kPiece;
    const bool is_there = row < chunk.num_tokens;
    const std::int64_t token = chunk.first_token + (is_there ? row : 0);
    copy_async(stage.value + tile_at(row, column), args.value.row(token, place.head) + place.first_feature + column,
               is_there);
  }
}

/// sums [16, tokens i] += rows [16, tokens j] triangle^T, where the triangle [i, j] is lower.
__device__ __forceinline__ void multiply_triangle(const std::uint32_t (&rows)[kChunk / 16][4],
                                                  const std::uint16_t* triangle, float (&sums)[kTokenTiles][4]) {
  const int lane = lane_id();
#pragma unroll
  for (int n = 0; n < kTokenTiles; n += 2) {
#pragma unroll
    for (int k = 0; k <= n / 2; ++k) {
      std::uint32_t b[4];
      load_matrices(b, triangle + tile_at(n * 8 + lane % 8 + lane / 16 * 8, k * 16 + lane / 8 % 2 * 8));
      multiply_half(sums[n], rows[k], b[0], b[1]);
      multiply_half(sums[n + 1], rows[k], b[2], b[3]);
    }
  }
}

/// One chunk: state^T [16, 128] of this warp in and out, results to stage.value.
__device__ __forceinline__ void run_chunk(Stage& stage, float scale, float (&state)[kKeyTiles][4]) {
  const int lane = lane_id(), first_feature = 16 * warp_id();
  // (K S)^T and (Q S)^T, [16, tokens].
  float reads[kTokenTiles][4] = {}, out[kTokenTiles][4] = {};
#pragma unroll
  for (int k = 0; k < kKeyTiles; k += 2) {
    std::uint32_t a[4];
    to_operand(state[k], state[k + 1], a);
#pragma unroll
    for (int n = 0; n < kTokenTiles; n += 2) {
      const int at = k / 8 * kTile + tile_at(n * 8 + lane % 8 + lane / 16 * 8, k % 8 * 8 + lane / 8 % 2 * 8);
      std::uint32_t b[4];
      load_matrices(b, stage.key + at);
      multiply_half(reads[n], a, b[0], b[1]);
      multiply_half(reads[n + 1], a, b[2], b[3]);
      load_matrices(b, stage.query + at);
      multiply_half(out[n], a, b[0], b[1]);
      multiply_half(out[n + 1], a, b[2], b[3]);
    }
  }

  // W^T = V^T - exp(G) (K S)^T, and out^T = scale exp(G) (Q S)^T; a column is a token.
  std::uint32_t rows[kChunk / 16][4];
#pragma unroll
  for (int n = 0; n < kTokenTiles; n += 2) {
    std::uint32_t values[4];  // tokens of tile n, features of the lower and upper half of the rows; then of tile n + 1
    load_matrices_transposed(values,
                             stage.value + tile_at(n * 8 + lane / 16 * 8 + lane % 8, first_feature + lane / 8 % 2 * 8));
#pragma unroll
    for (int t = 0; t < 2; ++t) {
      const int token = (n + t) * 8 + lane % 4 * 2;
      const float decay[2] = {stage.gates[token], stage.gates[token + 1]};
      float(&read)[4] = reads[n + t];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::uint32_t pair = values[2 * t + half];
        read[2 * half] = low_bf16(pair) - decay[0] * read[2 * half];
        read[2 * half + 1] = high_bf16(pair) - decay[1] * read[2 * half + 1];
        out[n + t][2 * half] *= scale * decay[0];
        out[n + t][2 * half + 1] *= scale * decay[1];
      }
    }
    to_operand(reads[n], reads[n + 1], rows[n / 2]);
  }

  // U^T = W^T T~^T, and out^T += U^T P~^T.
  float writes[kTokenTiles][4] = {};
  multiply_triangle(rows, stage.solve, writes);
#pragma unroll
  for (int n = 0; n < kTokenTiles; n += 2) to_operand(writes[n], writes[n + 1], rows[n / 2]);
  multiply_triangle(rows, stage.mix, out);

  // S'^T = exp(G_last) S^T + (U exp(G_last - G))^T K.
#pragma unroll
  for (int n = 0; n < kTokenTiles; ++n) {
    const int token = n * 8 + lane % 4 * 2;
    const float decay[2] = {stage.gates[kChunk + token], stage.gates[kChunk + token + 1]};
    writes[n][0] *= decay[0], writes[n][1] *= decay[1];
    writes[n][2] *= decay[0], writes[n][3] *= decay[1];
  }
#pragma unroll
  for (int n = 0; n < kTokenTiles; n += 2) to_operand(writes[n], writes[n + 1], rows[n / 2]);
  const float whole_decay = stage.gates[kChunk - 1];
#pragma unroll
  for (int n = 0; n < kKeyTiles; n += 2) {
#pragma unroll
    for (int t = 0; t < 2; ++t) {
#pragma unroll
      for (int c = 0; c < 4; ++c) state[n + t][c] *= whole_decay;
    }
#pragma unroll
    for (int k = 0; k < kChunk / 16; ++k) {
      std::uint32_t b[4];
      load_matrices_transposed(b, stage.key + n / 8 * kTile + tile_at(k * 16 + lane % 16, n % 8 * 8 + lane / 16 * 8));
      multiply_half(state[n], rows[k], b[0], b[1]);
      multiply_half(state[n + 1], rows[k], b[2], b[3]);
    }
  }

  // A warp writes the columns of stage.value that it alone has read.
  sync_warp();
#pragma unroll
  for (int n = 0; n < kTokenTiles; ++n) {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const int token = n * 8 + lane % 4 * 2 + c % 2, feature = first_feature + lane / 4 + c / 2 * 8;
      stage.value[tile_at(token, feature)] = narrow<bfloat16>(out[n][c]).bits;
    }
  }
  sync_warp();
}

__device__ void store_results(const Operands& args, const Place& place, const Chunk& chunk, const Stage& stage) {
  constexpr int kCopies = 2;  // of 16 bytes: the 16 features of a warp
  for (int i = lane_id(); i < chunk.num_tokens * kCopies; i += kWarpSize) {
    const int token = i / kCopies, feature = 16 * warp_id() + i % kCopies * 8;
    bfloat16* to = args.out.row(chunk.first_token + token, place.head) + place.first_feature + feature;
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(stage.value + tile_at(token, feature));
  }
}

/// Calls body(element of the stored state, element in registers).
template <typename Body>
__device__ __forceinline__ void for_state(const Operands& args, const Place& place, int sequence,
                                          float (&state)[kKeyTiles][4], const Body& body) {
  float* stored = args.state + sequence * args.state_strides[0] + place.head * args.state_strides[1] +
                  place.first_feature + 16 * warp_id() + lane_id() / 4;
#pragma unroll
  for (int n = 0; n < kKeyTiles; ++n) {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const int key_feature = n * 8 + lane_id() % 4 * 2 + c % 2;
      body(stored[key_feature * args.state_strides[2] + c / 2 * 8], state[n][c]);
    }
  }
}

/// @tparam kStages  chunks in shared memory: 2, one on its way while the other is used, where the device has room
template <int kStages>
__global__ void __launch_bounds__(kThreads) chunk_states_kernel(Operands args) {
  auto* stages = reinterpret_cast<Stage*>(dynamic_shared());
  const Sequence sequence = args.sequences[blockIdx.x];
  const int head = static_cast<int>(blockIdx.y);
  const Place place{head, head / args.sharing, static_cast<int>(blockIdx.z) * kValueBlock};

  float state[kKeyTiles][4] = {};
  if (args.state) for_state(args, place, sequence.index, state, [](const float& stored, float& own) { own = stored; });
  start_copies(args, place, sequence.first_chunk, stages[0]);
  commit_copies();
  for (int i = 0; i < sequence.num_chunks; ++i) {
    Stage& stage = stages[i % kStages];
    const std::int64_t chunk = sequence.first_chunk + i;
    const bool has_next = i + 1 < sequence.num_chunks;
    if (kStages > 1) {
      if (has_next) start_copies(args, place, chunk + 1, stages[(i + 1) % kStages]);
      commit_copies();
      wait_for_copies<1>();
    } else {
      wait_for_copies<0>();
    }
    sync_block();
    run_chunk(stage, args.scale, state);
    store_results(args, place, args.chunks[chunk], stage);
    sync_block();  // the next copies overwrite this stage, or the one before it
    if (kStages == 1) {
      if (has_next) start_copies(args, place, chunk + 1, stage);
      commit_copies();
    }
  }
  if (args.state) for_state(args, place, sequence.index, state, [](float& stored, const float& own) { stored = own; });
}

}  // namespace

void run_chunk_states(cudaStream_t stream, const Operands& args, std::int64_t num_seqs, std::int64_t value_dim,
                      std::size_t most_shared_bytes) {
  const bool fits_twice = 2 * sizeof(Stage) <= most_shared_bytes;
  launch("delta_rule: chunk states", stream,
         {dim3(blocks_for(num_seqs, 1), static_cast<unsigned>(args.num_v_heads), blocks_for(value_dim, kValueBlock)),
          kThreads, (fits_twice ? 2 : 1) * sizeof(Stage)},
         fits_twice ? chunk_states_kernel<2> : chunk_states_kernel<1>, args);
}

}  // namespace treble::cuda::delta_rule
