#include "cuda/delta_rule_chunks_sm80.cuh"
#include "cuda/launch.cuh"

// First kernel of the chunked gated delta rule. A block makes K K^T and Q K^T of one chunk and key head, and from them
// the two triangles of up to three value heads of that key head. Shared memory holds K and Q, then the systems I + A in
// blocks of 16 x 16. Their inverses: the blocks on the diagonal by substitution in fp32, a column in each lane, by the
// warp whose rows they are; what is below them on tensor cores, a column of blocks of one head in each warp,
//     T_ij = -T_ii sum_{j <= m < i} A_im T_mj,
// transposed, so that one product's sums are the next one's left operand. Their operands are pairs of halfs, high and
// low part, so nothing is rounded to less than 22 bits. Squaring A instead would lose all digits where keys are alike:
// its powers grow like binomials and cancel. Limit: latency of the loads, then of the inverse; four blocks share an SM.

namespace treble::cuda::delta_rule {
namespace {

constexpr int kMostHeads = 3;  // value heads of a block
constexpr int kBlock = 16;
constexpr int kBlocks = kChunk / kBlock;
constexpr int kBlockSize = kBlock * kBlock;
constexpr int kLowerBlocks = kBlocks * (kBlocks + 1) / 2;
constexpr int kPiece = 8;  // elements in 16 bytes

/// Where block (i, j), i >= j, lies among the lower ones.
__device__ __forceinline__ constexpr int lower_block(int i, int j) {
  return (i * (i + 1) / 2 + j) * kBlockSize;
}
/// The halves of a block's rows are exchanged in every other four rows: eight rows lie in different banks.
__device__ __forceinline__ int block_at(int row, int column) {
  return row * kBlock + (column / 8 ^ row / 4 % 2) * 8 + column % 8;
}

/// The decays of a chunk. G is kept in two floats: where a strong decay lies early in the chunk, later ones are small
/// differences of large sums.
struct Decays {
  float high[kChunk], low[kChunk], beta[kChunk];

  /// exp(G_i - G_j), i >= j
  __device__ __forceinline__ float between(int i, int j) const {
    return exp_approximately(fminf((high[i] - high[j]) + (low[i] - low[j]), 0.0f));
  }
};

/// Blocks of A below the diagonal and of T on it, each the sum of two halfs.
struct System {
  std::uint16_t high[kLowerBlocks * kBlockSize], low[kLowerBlocks * kBlockSize];
};

/// Of one warp.
union Scratch {
  float diagonal[2][kBlockSize + kPiece];  // blocks of A of two heads, in different banks
  std::uint16_t mix[kBlock * kChunk];      // its rows of P~
};

struct Shared {
  union {
    std::uint16_t rows[kRowsTiles * kTile];
    struct {
      System systems[kMostHeads];
      std::uint16_t solve[kMostHeads][kLowerBlocks * kBlockSize];  // T~
    } triangles;
  };
  Scratch scratch[kWarps];
  Decays decays[kMostHeads];
};

/// By one warp: a lane takes two tokens.
__device__ void sum_decays(const Operands& args, const Chunk& chunk, int head, Decays& decays) {
  const int token = 2 * lane_id();
  const auto log_decay = [&](int i) {
    return i < chunk.num_tokens ? static_cast<double>(args.log_decay.row(chunk.first_token + i)[head]) : 0.0;
  };
#pragma unroll
  for (int i = 0; i < 2; ++i)
    decays.beta[token + i] = token + i < chunk.num_tokens ? args.beta.row(chunk.first_token + token + i)[head] : 0.0f;
  const double first = log_decay(token), second = log_decay(token + 1);
  double sum = first + second;
#pragma unroll
  for (int distance = 1; distance < kWarpSize; distance *= 2) {
    const double before = shuffle_up(sum, distance);
    if (lane_id() >= distance) sum += before;
  }
  const double sums[2] = {sum - second, sum};
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    decays.high[token + i] = static_cast<float>(sums[i]);
    decays.low[token + i] = static_cast<float>(sums[i] - static_cast<double>(decays.high[token + i]));
  }
}

/// Eight bf16 values as halfs.
__device__ __forceinline__ uint4 to_halfs(const uint4& bf16) {
  const auto convert = [](std::uint32_t pair) { return pack_half(low_bf16(pair), high_bf16(pair)); };
  return make_uint4(convert(bf16.x), convert(bf16.y), convert(bf16.z), convert(bf16.w));
}

/// Keys and queries of a chunk as tiles of half, to shared memory and, if `keeps` holds, for the second kernel.
__device__ void load_rows(const Operands& args, const Chunk& chunk, int key_head, std::uint16_t* kept, bool keeps,
                          std::uint16_t* rows) {
  constexpr int kPieces = kKeyDim / kPiece;  // of a row
#pragma unroll 8
  for (int i = static_cast<int>(threadIdx.x); i < kChunk * kPieces; i += kThreads) {
    const int row = i / kPieces, column = i % kPieces * kPiece;
    uint4 key = make_uint4(0, 0, 0, 0), query = key;
    if (row < chunk.num_tokens) {
      const std::int64_t token = chunk.first_token + row;
      key = to_halfs(*reinterpret_cast<const uint4*>(args.key.row(token, key_head) + column));
      query = to_halfs(*reinterpret_cast<const uint4*>(args.query.row(token, key_head) + column));
    }
    const int at = column / kChunk * kTile + tile_at(row, column % kChunk);
    *reinterpret_cast<uint4*>(rows + at) = key;
    *reinterpret_cast<uint4*>(rows + 2 * kTile + at) = query;
    if (keeps) {
      *reinterpret_cast<uint4*>(kept + at) = key;
      *reinterpret_cast<uint4*>(kept + 2 * kTile + at) = query;
    }
  }
}

/// A number as the sum of two halfs.
struct TwoHalfs {
  std::uint16_t high, low;
};
__device__ __forceinline__ TwoHalfs split(float x) {
  const std::uint32_t high = pack_half(x, 0);
  return {static_cast<std::uint16_t>(high), static_cast<std::uint16_t>(pack_half(x - low_half(high), 0))};
}

/// The same of a left operand, [16, 16].
struct SplitOperand {
  std::uint32_t high[4], low[4];
};
__device__ __forceinline__ void split_operand(const float (&sums)[2][4], SplitOperand& operand) {
  to_operand(sums[0], sums[1], operand.high);
  float rest[2][4];
#pragma unroll
  for (int n = 0; n < 2; ++n) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t high = operand.high[2 * n + half];
      rest[n][2 * half] = sums[n][2 * half] - low_half(high);
      rest[n][2 * half + 1] = sums[n][2 * half + 1] - high_half(high);
    }
  }
  to_operand(rest[0], rest[1], operand.low);
}

/// sums [16, 16] += a [16, 16] block^T, all but the product of the low parts.
__device__ __forceinline__ void multiply_block(const SplitOperand& a, const System& system, int block,
                                               float (&sums)[2][4]) {
  const int lane = lane_id();
  const int at = block + block_at(lane % 8 + lane / 16 * 8, lane / 8 % 2 * 8);
  std::uint32_t high[4], low[4];
  load_matrices(high, system.high + at);
  load_matrices(low, system.low + at);
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    multiply_half(sums[n], a.low, high[2 * n], high[2 * n + 1]);
    multiply_half(sums[n], a.high, low[2 * n], low[2 * n + 1]);
    multiply_half(sums[n], a.high, high[2 * n], high[2 * n + 1]);
  }
}

/// Rows of a warp: A below the diagonal blocks, and the inverses of these; K K^T as sums of mma.sync.
__device__ void make_systems(const float (&key_key)[kChunk / 8][4], int num_heads, Shared& shared) {
  const int lane = lane_id(), warp = warp_id(), first_row = kBlock * warp;
  Scratch& scratch = shared.scratch[warp];
  for (int first_head = 0; first_head < num_heads; first_head += 2) {
    const int num_both = min(2, num_heads - first_head);
    for (int h = 0; h < num_both; ++h) {
      const Decays& decays = shared.decays[first_head + h];
      System& system = shared.triangles.systems[first_head + h];
#pragma unroll
      for (int n = 0; n < kChunk / 8; ++n) {
        const int j = n / 2;  // column of blocks
        if (j > warp) break;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int row = lane / 4 + 8 * half, column = n % 2 * 8 + lane % 4 * 2;
          const float beta = decays.beta[first_row + row];
          const float low = beta * key_key[n][2 * half], high = beta * key_key[n][2 * half + 1];
          if (j == warp) {
            scratch.diagonal[h][row * kBlock + column] = low;
            scratch.diagonal[h][row * kBlock + column + 1] = high;
          } else {
            const int at = lower_block(warp, j) + block_at(row, column);
            const std::uint32_t rounded = pack_half(low, high);
            *reinterpret_cast<std::uint32_t*>(system.high + at) = rounded;
            *reinterpret_cast<std::uint32_t*>(system.low + at) =
                pack_half(low - low_half(rounded), high - high_half(rounded));
          }
        }
      }
    }
    sync_warp();
    if (lane / kBlock < num_both) {
      const int head = first_head + lane / kBlock, column = lane % kBlock;
      const float* diagonal = scratch.diagonal[lane / kBlock];
      const Decays& decays = shared.decays[head];
      const float beta = decays.beta[first_row + column];
      System& system = shared.triangles.systems[head];
      float x[kBlock];
#pragma unroll
      for (int i = 0; i < kBlock; ++i) {
        x[i] = i == column ? 1.0f : 0.0f;
#pragma unroll
        for (int j = 0; j < i; ++j) x[i] -= diagonal[i * kBlock + j] * x[j];
        const int at = lower_block(warp, warp) + block_at(i, column);
        const TwoHalfs both = split(x[i]);
        system.high[at] = both.high;
        system.low[at] = both.low;
        const float solved = x[i] * decays.between(first_row + i, first_row + column) * beta;
        shared.triangles.solve[head][at] = static_cast<std::uint16_t>(pack_half(solved, 0));
      }
    }
    sync_warp();
  }
}

/// T~ below block (j, j) in its column of blocks, by one warp.
__device__ void solve_column(int j, const Decays& decays, const System& system, std::uint16_t* solve) {
  const int lane = lane_id();
  SplitOperand column[kBlocks];  // T_ij^T
#pragma unroll
  for (int i = 0; i < kBlocks; ++i) {
    if (i < j) continue;
    if (i == j) {
      const int at = lower_block(i, i) + block_at(lane / 16 * 8 + lane % 8, lane / 8 % 2 * 8);
      load_matrices_transposed(column[i].high, system.high + at);
      load_matrices_transposed(column[i].low, system.low + at);
      continue;
    }
    float sums[2][4] = {};
#pragma unroll
    for (int m = 0; m < i; ++m) {
      if (m >= j) multiply_block(column[m], system, lower_block(i, m), sums);
    }
    SplitOperand right_side;
    split_operand(sums, right_side);
    float inverse[2][4] = {};
    multiply_block(right_side, system, lower_block(i, i), inverse);
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        inverse[n][c] = -inverse[n][c];
        const int row = n * 8 + lane % 4 * 2 + c % 2, own_column = lane / 4 + c / 2 * 8;
        const int token = j * kBlock + own_column;
        const float solved = inverse[n][c] * decays.between(i * kBlock + row, token) * decays.beta[token];
        solve[lower_block(i, j) + block_at(row, own_column)] = static_cast<std::uint16_t>(pack_half(solved, 0));
      }
    }
    split_operand(inverse, column[i]);
  }
}

/// A warp's rows of P~.
__device__ void store_mix(const float (&query_key)[kChunk / 8][4], float scale, const Decays& decays,
                          std::uint16_t* staging, std::uint16_t* mix) {
  const int lane = lane_id(), first_row = kBlock * warp_id();
#pragma unroll
  for (int n = 0; n < kChunk / 8; ++n) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = lane / 4 + 8 * half, i = first_row + row, j = n * 8 + lane % 4 * 2;
      float mixed[2] = {};
      if (n * 8 < first_row + kBlock) {
#pragma unroll
        for (int c = 0; c < 2; ++c)
          mixed[c] = j + c <= i ? scale * decays.between(i, j + c) * query_key[n][2 * half + c] : 0.0f;
      }
      *reinterpret_cast<std::uint32_t*>(staging + tile_at(row, j)) = pack_half(mixed[0], mixed[1]);
    }
  }
  sync_warp();
#pragma unroll
  for (int i = lane * kPiece; i < kBlock * kChunk; i += kWarpSize * kPiece)
    *reinterpret_cast<uint4*>(mix + first_row * kChunk + i) = *reinterpret_cast<const uint4*>(staging + i);
  sync_warp();
}

/// Grid: chunks, key heads, parts of the value heads of a key head.
__global__ void __launch_bounds__(kThreads) chunk_matrices_kernel(Operands args) {
  Shared& shared = *reinterpret_cast<Shared*>(dynamic_shared());
  const int key_head = static_cast<int>(blockIdx.y), part = static_cast<int>(blockIdx.z);
  const int num_parts = static_cast<int>(gridDim.z);
  const int first_head = args.sharing * part / num_parts;
  const int num_heads = args.sharing * (part + 1) / num_parts - first_head;
  wait_for_earlier_kernels();
  const Chunk chunk = args.chunks[blockIdx.x];
  const int thread = static_cast<int>(threadIdx.x), lane = lane_id(), warp = warp_id(), first_row = kBlock * warp;
  const std::int64_t chunk_index = blockIdx.x;
  const std::int64_t first_item = chunk_index * args.num_v_heads + key_head * args.sharing + first_head;

  if (warp < num_heads) sum_decays(args, chunk, key_head * args.sharing + first_head + warp, shared.decays[warp]);
  load_rows(args, chunk, key_head,
            args.matrices.rows + (chunk_index * args.num_k_heads + key_head) * kRowsTiles * kTile, part == 0,
            shared.rows);
  sync_block();

  // A warp's 16 rows of both products; columns after its last row are not needed.
  float key_key[kChunk / 8][4] = {}, query_key[kChunk / 8][4] = {};
#pragma unroll
  for (int k = 0; k < kKeyDim; k += 16) {
    const std::uint16_t* key_tile = shared.rows + k / kChunk * kTile;
    const int own = tile_at(first_row + lane % 16, k % kChunk + lane / 16 * 8);
    std::uint32_t keys[4], queries[4];
    load_matrices(keys, key_tile + own);
    load_matrices(queries, key_tile + 2 * kTile + own);
#pragma unroll
    for (int n = 0; n < kChunk / 8; n += 2) {
      if (n * 8 > first_row) break;
      std::uint32_t b[4];
      load_matrices(b, key_tile + tile_at(n * 8 + lane % 8 + lane / 16 * 8, k % kChunk + lane / 8 % 2 * 8));
      multiply_half(key_key[n], keys, b[0], b[1]);
      multiply_half(key_key[n + 1], keys, b[2], b[3]);
      multiply_half(query_key[n], queries, b[0], b[1]);
      multiply_half(query_key[n + 1], queries, b[2], b[3]);
    }
  }
  sync_block();  // the rows are read; the systems take their place

  make_systems(key_key, num_heads, shared);
  std::uint16_t* triangles = args.matrices.triangles + first_item * kTriangleTiles * kTile;
  for (int h = 0; h < num_heads; ++h) {
    store_mix(query_key, args.scale, shared.decays[h], shared.scratch[warp].mix,
              triangles + (h * kTriangleTiles + 1) * kTile);
  }
  sync_block();
  // The longest columns first.
  for (int i = warp; i < (kBlocks - 1) * num_heads; i += kWarps) {
    const int h = i % num_heads;
    solve_column(i / num_heads, shared.decays[h], shared.triangles.systems[h], shared.triangles.solve[h]);
  }
  sync_block();

  constexpr int kPieces = kChunk / kPiece;  // of a row
  for (int h = 0; h < num_heads; ++h) {
    for (int e = thread; e < kChunk * kPieces; e += kThreads) {
      const int i = e / kPieces, j = e % kPieces * kPiece;
      uint4 solved = make_uint4(0, 0, 0, 0);
      if (j / kBlock <= i / kBlock) {
        solved = *reinterpret_cast<const uint4*>(shared.triangles.solve[h] + lower_block(i / kBlock, j / kBlock) +
                                                 block_at(i % kBlock, j % kBlock));
      }
      *reinterpret_cast<uint4*>(triangles + h * kTriangleTiles * kTile + tile_at(i, j)) = solved;
    }
    if (thread < kChunk) {
      const Decays& decays = shared.decays[h];
      float* gates = args.matrices.gates + (first_item + h) * 2 * kChunk;
      gates[thread] = exp_approximately(decays.high[thread] + decays.low[thread]);
      gates[kChunk + thread] = decays.between(kChunk - 1, thread);
    }
  }
}

}  // namespace

void make_chunk_matrices(cudaStream_t stream, const Operands& args, std::int64_t num_chunks) {
  launch("delta_rule: chunk matrices", stream,
         {.grid = dim3(blocks_for(num_chunks, 1), static_cast<unsigned>(args.num_k_heads),
                       blocks_for(args.sharing, kMostHeads)),
          .num_threads = kThreads,
          .shared_bytes = sizeof(Shared),
          .starts_early = true},
         chunk_matrices_kernel, args);
}

}  // namespace treble::cuda::delta_rule
