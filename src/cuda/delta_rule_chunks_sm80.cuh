#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/rows.cuh"

// The gated delta rule in chunks of 64 tokens, on tensor cores with IEEE half operands and fp32 sums: inside a chunk,
// half keeps eight times the digits of bf16, and everything that meets it is bounded (keys and queries have length 1,
// decays are at most 1, and so is the inverse below). The state is fp32.
//
// With G_i the running sum of log_decay in the chunk, D_ij = exp(G_i - G_j) for j <= i, and S the state before it:
//     A = strictly lower part of diag(beta) K K^T            T = (I + A)^-1
//     T~_ij = D_ij T_ij beta_j                               P~_ij = scale D_ij (Q K^T)_ij for j <= i
//     W = V - diag(exp(G)) K S                               U = T~ W
//     out = scale diag(exp(G)) Q S + P~ U                    S' = exp(G_last) S + K^T diag(exp(G_last - G)) U
// The decays enter after the inversion, where they cannot harm it. One kernel makes T~ and P~ of every chunk and value
// head, all at once; the other walks along the chunks of a sequence.

namespace treble::cuda::delta_rule {

constexpr int kChunk = 64;
constexpr int kKeyDim = 128;
constexpr int kValueBlock = 64;  // features of a value head that a block of the second kernel takes
constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpSize;

/// 64 tokens of one sequence, or fewer at its end. A sequence's chunks are neighbours.
struct Chunk {
  std::int32_t first_token, num_tokens;
};

/// A sequence that has tokens.
struct Sequence {
  std::int32_t first_chunk, num_chunks;
  std::int32_t index;  // of its state
};

/// Matrices of half go from the first kernel to the second in tiles of 64 x 64. The 16-byte pieces of a row are
/// permuted by the row: eight rows of the same column lie in different banks, and this is the layout that wgmma reads.
constexpr int kTile = kChunk * kChunk;  // elements
__device__ __forceinline__ int tile_at(int row, int column) {
  return row * kChunk + (column / 8 ^ row % 8) * 8 + column % 8;
}

/// What the first kernel leaves.
struct ChunkMatrices {
  std::uint16_t* rows;       // [chunks, key heads, 4 tiles] half: K, features 0 to 63 and 64 to 127, and Q, the same
  std::uint16_t* triangles;  // [chunks, heads, 2 tiles] half: T~ and P~
  float* gates;              // [chunks, heads, 2, 64]: exp(G), exp(G_last - G)
};
constexpr int kRowsTiles = 4, kTriangleTiles = 2;

struct Operands {
  Heads<const bfloat16> query, key, value;
  Heads<bfloat16> out;
  Rows<const float> log_decay, beta;
  float* state;  // or null
  std::int64_t state_strides[3];
  const Chunk* chunks;
  const Sequence* sequences;
  ChunkMatrices matrices;
  int num_k_heads, num_v_heads, sharing;
  float scale;
};

/// Two neighbouring tiles of sums, [16, 8] each, as the left operand of the next product.
__device__ __forceinline__ void to_operand(const float* low, const float* high, std::uint32_t (&a)[4]) {
  a[0] = pack_half(low[0], low[1]);
  a[1] = pack_half(low[2], low[3]);
  a[2] = pack_half(high[0], high[1]);
  a[3] = pack_half(high[2], high[3]);
}

/// Makes the matrices of every chunk.
void make_chunk_matrices(cudaStream_t stream, const Operands& args, std::int64_t num_chunks);

/// Walks along the chunks of every sequence. @param most_shared_bytes  that a block may ask for
void run_chunk_states(cudaStream_t stream, const Operands& args, std::int64_t num_seqs, std::int64_t value_dim,
                      std::size_t most_shared_bytes);

/// The same on Hopper. @param num_warpgroups  that a block computes with, 1 or 2, each with 64 features of a value head
void run_chunk_states_wgmma(cudaStream_t stream, const Operands& args, std::int64_t num_seqs, std::int64_t value_dim,
                            int num_warpgroups);

}  // namespace treble::cuda::delta_rule
