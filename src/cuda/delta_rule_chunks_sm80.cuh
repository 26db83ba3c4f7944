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

/// What the first kernel leaves, for each chunk and value head.
struct ChunkMatrices {
  std::uint16_t* solve;  // [chunks, heads, 64, 64] half: T~
  std::uint16_t* mix;    // the same: P~
  float* gates;          // [chunks, heads, 2, 64]: exp(G), exp(G_last - G)
};

struct Operands {
  Heads<const bfloat16> query, key, value;
  Heads<bfloat16> out;
  Rows<const float> log_decay, beta;
  float* state;  // or null
  std::int64_t state_strides[3];
  const Chunk* chunks;
  const Sequence* sequences;
  ChunkMatrices matrices;
  int num_v_heads, sharing;
  float scale;
};

/// Eight bf16 values as halfs.
__device__ __forceinline__ uint4 to_halfs(const uint4& bf16) {
  const auto convert = [](std::uint32_t pair) { return pack_half(low_bf16(pair), high_bf16(pair)); };
  return make_uint4(convert(bf16.x), convert(bf16.y), convert(bf16.z), convert(bf16.w));
}

/// Makes the matrices of every chunk.
void make_chunk_matrices(cudaStream_t stream, const Operands& args, std::int64_t num_chunks);

/// Walks along the chunks of every sequence. @param most_shared_bytes  that a block may ask for
void run_chunk_states(cudaStream_t stream, const Operands& args, std::int64_t num_seqs, std::int64_t value_dim,
                      std::size_t most_shared_bytes);

}  // namespace treble::cuda::delta_rule
