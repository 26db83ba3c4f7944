#include <span>
#include <vector>

#include "cuda/attention_schedule.h"
#include "cuda/choose_attention.h"
#include "cuda/cuda_ops.h"
#include "cuda/launch.cuh"
#include "cuda/rows.cuh"

// Softmax attention in bf16 on tensor cores, with a running maximum as in arXiv:2205.14135. A block of four warps takes
// 64 queries of one sequence and head, 16 a warp; keys and values come in blocks of 64. Shared memory holds queries, a
// block of keys and a block of values, 99 KiB for heads of 256: the next keys are on their way while values are
// multiplied, and values while keys are. Scores and sums are fp32; the weights exp(score - maximum) are rounded to bf16
// before they meet the values, their sum is not. Limit: mma.sync, of which a causal tile of the diagonal wastes half.

namespace treble::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kQueries = 16 * kWarps;
constexpr int kKeys = 64;
constexpr int kChunk = 8;    // elements in 16 bytes
constexpr int kPadding = 8;  // elements after a row in shared memory: eight rows then start in eight different banks

struct AttentionMma {
  Heads<const bfloat16> query, key, value, gate;
  const AttentionTile* tiles;
  int head_dim, group;
  bool causal;
  float score_scale;  // to powers of two
  Rows<bfloat16> out;
};

/// Starts copying rows [0, kRows) of a head to shared memory, zeros in rows from num_rows on and after head_dim.
template <int kRows, int kHeadDim>
__device__ __forceinline__ void copy_rows(const Heads<const bfloat16>& heads, std::int64_t first, int head,
                                          int num_rows, int head_dim, bfloat16* shared) {
  constexpr int kChunks = kHeadDim / kChunk;
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kChunks; i += kThreads) {
    const int row = i / kChunks, column = i % kChunks * kChunk;
    const bool is_there = row < num_rows && column < head_dim;
    const bfloat16* from = heads.row(first + (is_there ? row : 0), head) + (is_there ? column : 0);
    copy_async(shared + row * (kHeadDim + kPadding) + column, from, is_there);
  }
}

template <int kHeadDim>
__global__ void __launch_bounds__(kThreads) attention_mma_kernel(AttentionMma args) {
  constexpr int kStride = kHeadDim + kPadding;
  constexpr int kScoreTiles = kKeys / 8, kOutTiles = kHeadDim / 8;
  const AttentionTile tile = args.tiles[blockIdx.x];
  const int head = static_cast<int>(blockIdx.y), kv_head = head / args.group;
  const int lane = lane_id(), first_row = 16 * warp_id();
  auto* queries = reinterpret_cast<bfloat16*>(dynamic_shared());
  bfloat16* keys = queries + kQueries * kStride;
  bfloat16* values = keys + kKeys * kStride;

  copy_rows<kQueries, kHeadDim>(args.query, tile.first_query, head, tile.num_queries, args.head_dim, queries);
  copy_rows<kKeys, kHeadDim>(args.key, tile.first_key, kv_head, tile.num_keys, args.head_dim, keys);
  commit_copies();

  float out[kOutTiles][4] = {};
  float maximum[2] = {-INFINITY, -INFINITY}, total[2] = {};  // of rows lane / 4 and lane / 4 + 8; totals of this lane
  for (int first = 0; first < tile.num_keys; first += kKeys) {
    copy_rows<kKeys, kHeadDim>(args.value, tile.first_key + first, kv_head, tile.num_keys - first, args.head_dim,
                               values);
    commit_copies();
    wait_for_copies<1>();  // all but the values
    sync_block();

    float scores[kScoreTiles][4] = {};
#pragma unroll
    for (int k = 0; k < kHeadDim; k += 16) {
      std::uint32_t a[4];
      load_matrices(a, queries + (first_row + lane % 16) * kStride + k + lane / 16 * 8);
#pragma unroll
      for (int n = 0; n < kScoreTiles; n += 2) {
        std::uint32_t b[4];
        load_matrices(b, keys + (n * 8 + lane % 8 + lane / 16 * 8) * kStride + k + lane / 8 % 2 * 8);
        multiply_bf16(scores[n], a, b[0], b[1]);
        multiply_bf16(scores[n + 1], a, b[2], b[3]);
      }
    }
    sync_block();  // all warps have read the keys
    const int next = first + kKeys;
    if (next < tile.num_keys)
      copy_rows<kKeys, kHeadDim>(args.key, tile.first_key + next, kv_head, tile.num_keys - next, args.head_dim, keys);
    commit_copies();

    // Row r of the tile reads keys below num_keys - (num_queries - 1 - r). Rows past the last query read them all:
    // their results go nowhere.
    float rescale[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first_row + lane / 4 + 8 * half;
      const int hidden = args.causal ? max(tile.num_queries - 1 - row, 0) : 0;
      const int limit = tile.num_keys - hidden - first - lane % 4 * 2;  // for the first column of this lane
      float highest = maximum[half];
#pragma unroll
      for (int n = 0; n < kScoreTiles; ++n) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          float& score = scores[n][2 * half + c];
          score = n * 8 + c < limit ? score * args.score_scale : -INFINITY;
          highest = fmaxf(highest, score);
        }
      }
      highest = fmaxf(highest, shuffle_xor(highest, 1));
      highest = fmaxf(highest, shuffle_xor(highest, 2));
      rescale[half] = exp2f(maximum[half] - highest);
      maximum[half] = highest;
      total[half] *= rescale[half];
#pragma unroll
      for (int n = 0; n < kScoreTiles; ++n) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          float& score = scores[n][2 * half + c];
          score = exp2f(score - highest);
          total[half] += score;
        }
      }
    }
#pragma unroll
    for (int n = 0; n < kOutTiles; ++n) {
      out[n][0] *= rescale[0], out[n][1] *= rescale[0];
      out[n][2] *= rescale[1], out[n][3] *= rescale[1];
    }

    wait_for_copies<1>();  // all but the next keys
    sync_block();
#pragma unroll
    for (int k = 0; k < kKeys; k += 16) {
      // Two tiles of scores are the fragment of 16 keys.
      const float(&low)[4] = scores[k / 8];
      const float(&high)[4] = scores[k / 8 + 1];
      const std::uint32_t a[4] = {pack_bf16(low[0], low[1]), pack_bf16(low[2], low[3]), pack_bf16(high[0], high[1]),
                                  pack_bf16(high[2], high[3])};
#pragma unroll
      for (int n = 0; n < kOutTiles; n += 2) {
        std::uint32_t b[4];
        load_matrices_transposed(b, values + (k + lane % 16) * kStride + n * 8 + lane / 16 * 8);
        multiply_bf16(out[n], a, b[0], b[1]);
        multiply_bf16(out[n + 1], a, b[2], b[3]);
      }
    }
    sync_block();  // all warps have read the values
  }

#pragma unroll
  for (int half = 0; half < 2; ++half) {
    total[half] += shuffle_xor(total[half], 1);
    total[half] += shuffle_xor(total[half], 2);
    const int row = first_row + lane / 4 + 8 * half;
    if (row >= tile.num_queries) continue;
    const std::int64_t query = tile.first_query + row;
    bfloat16* to = args.out.row(query) + static_cast<std::int64_t>(head) * args.head_dim;
    const bfloat16* gate = args.gate.data ? args.gate.row(query, head) : nullptr;
#pragma unroll
    for (int n = 0; n < kOutTiles; ++n) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const int feature = n * 8 + lane % 4 * 2 + c;
        if (feature >= args.head_dim) continue;
        float x = out[n][2 * half + c] / total[half];
        if (gate) x = round_to<bfloat16>(x) * round_to<bfloat16>(sigmoid_as<bfloat16>(widen(gate[feature])));
        to[feature] = narrow<bfloat16>(x);
      }
    }
  }
}

using Kernel = void (*)(AttentionMma);

Kernel kernel_for(std::int64_t padded) {
  switch (padded) {
    case 64:
      return attention_mma_kernel<64>;
    case 80:
      return attention_mma_kernel<80>;
    case 128:
      return attention_mma_kernel<128>;
    default:
      return attention_mma_kernel<256>;
  }
}

}  // namespace

void CudaOps::attention_mma_sm80(const Attention& args) {
  const std::int64_t num_q_heads = args.query.size(1), head_dim = args.query.size(2);
  const std::int64_t padded = padded_head_dim(head_dim);
  const auto borders = [](const TensorView& view) {
    return std::span(view.as<std::int32_t>(), static_cast<std::size_t>(view.size(0)));
  };
  const std::vector<AttentionTile> tiles =
      attention_tiles(borders(args.cu_seqlens_q), borders(args.cu_seqlens_k), args.causal, kQueries);
  constexpr float kLog2E = 1.4426950408889634f;
  const AttentionMma mma{const_heads<bfloat16>(args.query),
                         const_heads<bfloat16>(args.key),
                         const_heads<bfloat16>(args.value),
                         const_heads<bfloat16>(args.gate),
                         staging_.bring(tiles.data(), static_cast<std::int64_t>(tiles.size())),
                         static_cast<int>(head_dim),
                         static_cast<int>(num_q_heads / args.key.size(1)),
                         args.causal,
                         args.scale * kLog2E,
                         rows_of<bfloat16>(args.out.plain)};
  const std::size_t shared_bytes =
      static_cast<std::size_t>((kQueries + 2 * kKeys) * (padded + kPadding)) * sizeof(bfloat16);
  launch("attention_mma_sm80", stream_.get(),
         {dim3(static_cast<unsigned>(tiles.size()), static_cast<unsigned>(num_q_heads)), kThreads, shared_bytes},
         kernel_for(padded), mma);
}

}  // namespace treble::cuda
