#include "cuda/delta_rule_chunks_sm80.cuh"
#include "cuda/launch.cuh"

// First kernel of the chunked gated delta rule: a block makes the two triangles of one chunk and value head. The
// products K K^T and Q K^T are mma.sync; the inverse is fp32: 16 x 16 blocks on the diagonal by substitution, a column
// in each thread, then the blocks below it, one diagonal after the other. Squaring A instead would lose all digits
// where keys are alike: its powers grow like binomials and cancel. Limit: latency of the inverse; many blocks share an
// SM.

namespace treble::cuda::delta_rule {
namespace {

constexpr int kStride = kKeyDim + 8;         // halfs: eight rows start in eight different banks
constexpr int kTriangleStride = kChunk + 1;  // floats
constexpr int kBlock = 16;
constexpr int kBlocks = kChunk / kBlock;

/// The decays of a chunk. G is kept in two floats: where a strong decay lies early in the chunk, later ones are small
/// differences of large sums.
struct Decays {
  float high[kChunk], low[kChunk], beta[kChunk];

  /// exp(G_i - G_j), i >= j
  __device__ float between(int i, int j) const { return expf(fminf((high[i] - high[j]) + (low[i] - low[j]), 0.0f)); }
};

struct Shared {
  union {
    struct {
      std::uint16_t key[kChunk * kStride], query[kChunk * kStride];
    } rows;
    struct {
      float system[kChunk * kTriangleStride];   // A; blocks above the diagonal are scratch
      float inverse[kChunk * kTriangleStride];  // T
    } triangles;
  };
  Decays decays;
};

/// By the first warp: a lane takes two tokens.
__device__ void sum_decays(const Operands& args, const Chunk& chunk, int head, Decays& decays) {
  const int token = 2 * lane_id();
  const auto log_decay = [&](int i) {
    return i < chunk.num_tokens ? static_cast<double>(args.log_decay.row(chunk.first_token + i)[head]) : 0.0;
  };
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
    decays.beta[token + i] = token + i < chunk.num_tokens ? args.beta.row(chunk.first_token + token + i)[head] : 0.0f;
  }
}

/// inverse = (I + system)^-1, by the whole block.
__device__ void invert(float* system, float* inverse) {
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < kChunk) {
    const int first = thread / kBlock * kBlock, column = thread % kBlock;
    float x[kBlock];
#pragma unroll
    for (int i = 0; i < kBlock; ++i) {
      x[i] = i == column ? 1.0f : 0.0f;
#pragma unroll
      for (int j = 0; j < i; ++j) x[i] -= system[(first + i) * kTriangleStride + first + j] * x[j];
      inverse[(first + i) * kTriangleStride + first + column] = x[i];
    }
  }
  sync_block();
  // T_ij = -T_ii sum_{j <= m < i} A_im T_mj for blocks i > j, those nearest to the diagonal first.
  for (int distance = 1; distance < kBlocks; ++distance) {
    const int num_elements = (kBlocks - distance) * kBlock * kBlock;
    for (int e = thread; e < num_elements; e += kThreads) {
      const int j = e / (kBlock * kBlock) * kBlock, i = j + distance * kBlock;
      const int row = e / kBlock % kBlock, column = e % kBlock;
      float sum = 0;
      for (int m = j; m < i; ++m)
        sum += system[(i + row) * kTriangleStride + m] * inverse[m * kTriangleStride + j + column];
      system[(j + row) * kTriangleStride + i + column] = sum;  // above the diagonal
    }
    sync_block();
    for (int e = thread; e < num_elements; e += kThreads) {
      const int j = e / (kBlock * kBlock) * kBlock, i = j + distance * kBlock;
      const int row = e / kBlock % kBlock, column = e % kBlock;
      float sum = 0;
#pragma unroll
      for (int m = 0; m < kBlock; ++m)
        sum += inverse[(i + row) * kTriangleStride + i + m] * system[(j + m) * kTriangleStride + i + column];
      inverse[(i + row) * kTriangleStride + j + column] = -sum;
    }
    sync_block();
  }
}

__global__ void __launch_bounds__(kThreads) chunk_matrices_kernel(Operands args) {
  Shared& shared = *reinterpret_cast<Shared*>(dynamic_shared());
  const int head = static_cast<int>(blockIdx.y), key_head = head / args.sharing;
  const Chunk chunk = args.chunks[blockIdx.x];
  const int thread = static_cast<int>(threadIdx.x), lane = lane_id(), first_row = 16 * warp_id();
  const std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * args.num_v_heads + head;

  if (warp_id() == 0) sum_decays(args, chunk, head, shared.decays);
  constexpr int kCopies = kKeyDim / 8;  // of 16 bytes in a row
  for (int i = thread; i < kChunk * kCopies; i += kThreads) {
    const int row = i / kCopies, column = i % kCopies * 8;
    uint4 key = make_uint4(0, 0, 0, 0), query = key;
    if (row < chunk.num_tokens) {
      const std::int64_t token = chunk.first_token + row;
      key = to_halfs(*reinterpret_cast<const uint4*>(args.key.row(token, key_head) + column));
      query = to_halfs(*reinterpret_cast<const uint4*>(args.query.row(token, key_head) + column));
    }
    *reinterpret_cast<uint4*>(shared.rows.key + row * kStride + column) = key;
    *reinterpret_cast<uint4*>(shared.rows.query + row * kStride + column) = query;
  }
  sync_block();

  // A warp's 16 rows of both products; columns after its last row are not needed.
  float key_key[kChunk / 8][4] = {}, query_key[kChunk / 8][4] = {};
#pragma unroll
  for (int k = 0; k < kKeyDim; k += 16) {
    std::uint32_t keys[4], queries[4];
    load_matrices(keys, shared.rows.key + (first_row + lane % 16) * kStride + k + lane / 16 * 8);
    load_matrices(queries, shared.rows.query + (first_row + lane % 16) * kStride + k + lane / 16 * 8);
#pragma unroll
    for (int n = 0; n < kChunk / 8; n += 2) {
      if (n * 8 > first_row) break;
      std::uint32_t b[4];
      load_matrices(b, shared.rows.key + (n * 8 + lane % 8 + lane / 16 * 8) * kStride + k + lane / 8 % 2 * 8);
      multiply_half(key_key[n], keys, b[0], b[1]);
      multiply_half(key_key[n + 1], keys, b[2], b[3]);
      multiply_half(query_key[n], queries, b[0], b[1]);
      multiply_half(query_key[n + 1], queries, b[2], b[3]);
    }
  }
  sync_block();  // the rows are read; the triangles take their place

  const Decays& decays = shared.decays;
  auto* mix = reinterpret_cast<std::uint32_t*>(args.matrices.mix + item * kChunk * kChunk);
#pragma unroll
  for (int n = 0; n < kChunk / 8; ++n) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int i = first_row + lane / 4 + 8 * half;
      float mixed[2];
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const int j = n * 8 + lane % 4 * 2 + c;
        shared.triangles.system[i * kTriangleStride + j] = j < i ? decays.beta[i] * key_key[n][2 * half + c] : 0.0f;
        mixed[c] = j <= i ? args.scale * decays.between(i, j) * query_key[n][2 * half + c] : 0.0f;
      }
      mix[(i * kChunk + n * 8) / 2 + lane % 4] = pack_half(mixed[0], mixed[1]);
    }
  }
  sync_block();
  invert(shared.triangles.system, shared.triangles.inverse);

  auto* solve = reinterpret_cast<std::uint32_t*>(args.matrices.solve + item * kChunk * kChunk);
  for (int e = thread; e < kChunk * kChunk / 2; e += kThreads) {
    const int i = e / (kChunk / 2);
    float solved[2];
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int j = e % (kChunk / 2) * 2 + c;
      solved[c] =
          j <= i ? decays.between(i, j) * shared.triangles.inverse[i * kTriangleStride + j] * decays.beta[j] : 0.0f;
    }
    solve[e] = pack_half(solved[0], solved[1]);
  }
  if (thread < kChunk) {
    float* gates = args.matrices.gates + item * 2 * kChunk;
    gates[thread] = expf(decays.high[thread] + decays.low[thread]);
    gates[kChunk + thread] = decays.between(kChunk - 1, thread);
  }
}

}  // namespace

void make_chunk_matrices(cudaStream_t stream, const Operands& args, std::int64_t num_chunks) {
  launch("delta_rule: chunk matrices", stream,
         {dim3(blocks_for(num_chunks, 1), static_cast<unsigned>(args.num_v_heads)), kThreads, sizeof(Shared)},
         chunk_matrices_kernel, args);
}

}  // namespace treble::cuda::delta_rule
