#include <algorithm>
#include <vector>

#include "cuda/borders.h"
#include "cuda/choose_attention.h"
#include "cuda/cuda_ops.h"
#include "cuda/few_queries_schedule.h"
#include "cuda/launch.cuh"
#include "cuda/rows.cuh"
#include "cuda/scratch.h"

// Softmax attention in fp32 for few queries of many keys, as the decision head asks. A block takes 16 queries of one
// head and a range of their sequence's keys; its four warps take 16 of the keys in turn. A second kernel puts the
// ranges together, in order, by their maxima and totals. Ranges start at the sequence's first key and their length
// follows from its length, so that the digits do not depend on what else is packed.
//
// Products run on tensor cores, as exact as in fp32: every operand is three bf16 terms (linear.cu), and of the nine
// products of terms the six are added up that fp32 can hold. Keys, values and queries go from memory to registers. As
// in linear_few_rows.cu, features and keys stand in an order in which a lane's share is contiguous in memory.
// Limit: taking keys and values apart, some 350 instructions for 16 keys.

namespace treble::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kQueries = kFewQueriesPerTile;
constexpr int kKeys = 16;             // that a warp takes at once
constexpr int kDim = kFewQueriesDim;  // features of a head, zeros past its own
constexpr int kPieces = 2;            // of 32 features, which eight lanes of a row of four read
constexpr int kTerms = 3;
static_assert(kFewQueriesMostRanges <= kWarpSize);  // a lane for each when they are put together
static_assert(kFewQueriesKeysPerStep == kWarps * kKeys);

/// What a tile leaves of every head and query: the weighted sums, the largest score and the total of the weights.
struct Parts {
  float* sums;    // [num_tiles, num_heads, kQueries, kDim]
  float* maxima;  // [num_tiles, num_heads, kQueries]
  float* totals;  // alike
};

struct AttentionFewQueries {
  Heads<const float> query, key, value;
  const FewQueriesTile* tiles;
  int head_dim, group;
  bool is_aligned;
  float score_scale;  // to powers of two
  Parts parts;        // nowhere: a tile has all keys of its sequence, and writes `out`
  Rows<float> out;
};

/// x = terms[0] + terms[1] + terms[2], in pairs for the registers of an operand.
__device__ __forceinline__ void split(float low, float high, std::uint32_t (&terms)[kTerms]) {
#pragma unroll
  for (int term = 0; term < kTerms; ++term) {
    terms[term] = pack_bf16(low, high);
    low -= low_bf16(terms[term]);
    high -= high_bf16(terms[term]);
  }
}

/// d += a b. The products left out are below the last digit of fp32.
__device__ __forceinline__ void multiply_terms(float (&d)[4], const std::uint32_t (&a)[4][kTerms],
                                               const std::uint32_t (&b0)[kTerms], const std::uint32_t (&b1)[kTerms]) {
#pragma unroll
  for (int sum = kTerms - 1; sum >= 0; --sum) {  // the smallest first
#pragma unroll
    for (int term = 0; term <= sum; ++term) {
      const std::uint32_t of_a[4] = {a[0][term], a[1][term], a[2][term], a[3][term]};
      multiply_bf16(d, of_a, b0[sum - term], b1[sum - term]);
    }
  }
}

/// @tparam kIsWhole  heads of kDim features whose rows are aligned
template <bool kIsWhole>
__device__ __forceinline__ void load_features(const float* row, int feature, const AttentionFewQueries& args,
                                              float (&values)[kGroup]) {
  load_group(row, feature, kIsWhole ? kDim : args.head_dim, kIsWhole || args.is_aligned, values);
}

template <bool kIsWhole>
__global__ void __launch_bounds__(kThreads) attention_few_queries_kernel(AttentionFewQueries args) {
  wait_for_earlier_kernels();
  constexpr int kStride = kDim + 4;
  __shared__ float warp_sums[kWarps][kQueries][kStride];
  __shared__ float warp_maxima[kWarps][kQueries], warp_totals[kWarps][kQueries];
  const FewQueriesTile tile = args.tiles[blockIdx.x];
  const int head = static_cast<int>(blockIdx.y), kv_head = head / args.group;
  const int row = lane_id() / 4, quarter = lane_id() % 4;

  std::uint32_t queries[kPieces][2][4][kTerms];  // of 32 features: two operands of 16 queries x 16 features
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    // Queries past the last are the last again; they are not stored.
    const float* query = args.query.row(tile.first_query + min(row + 8 * half, tile.num_queries - 1), head);
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      float values[kGroup];
      load_features<kIsWhole>(query, 32 * piece + kGroup * quarter, args, values);
#pragma unroll
      for (int pair = 0; pair < kGroup / 2; ++pair)
        split(values[2 * pair] * args.score_scale, values[2 * pair + 1] * args.score_scale,
              queries[piece][pair / 2][pair % 2 * 2 + half]);
    }
  }

  float maximum[2] = {-INFINITY, -INFINITY}, total[2] = {};
  float sums[kDim / 8][4] = {};  // [feature 8 n' + n, two queries]: column n' of product n
  for (int first = warp_id() * kKeys; first < tile.num_keys; first += kWarps * kKeys) {
    const int last = tile.num_keys - 1;
    float scores[2][4] = {};
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const float* key = args.key.row(tile.first_key + min(first + 8 * n + row, last), kv_head);
#pragma unroll
      for (int piece = 0; piece < kPieces; ++piece) {
        float values[kGroup];
        load_features<kIsWhole>(key, 32 * piece + kGroup * quarter, args, values);
        std::uint32_t keys[kGroup / 2][kTerms];
#pragma unroll
        for (int pair = 0; pair < kGroup / 2; ++pair) split(values[2 * pair], values[2 * pair + 1], keys[pair]);
        multiply_terms(scores[n], queries[piece][0], keys[0], keys[1]);
        multiply_terms(scores[n], queries[piece][1], keys[2], keys[3]);
      }
    }
    float values[4][kGroup];  // of keys 2 quarter + {0, 1, 8, 9}, features 8 row to 8 row + 7
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int key = first + 2 * quarter + i % 2 + i / 2 * 8;
      load_features<kIsWhole>(args.value.row(tile.first_key + min(key, last), kv_head), kGroup * row, args, values[i]);
    }

    std::uint32_t weights[4][kTerms];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float highest = maximum[half];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float& score = scores[i / 2][2 * half + i % 2];
        if (first + 2 * quarter + i % 2 + i / 2 * 8 > last) score = -INFINITY;
        highest = fmaxf(highest, score);
      }
      highest = fmaxf(highest, shuffle_xor(highest, 1));
      highest = fmaxf(highest, shuffle_xor(highest, 2));
      const float rescale = exp2f(maximum[half] - highest);
      maximum[half] = highest;
      total[half] *= rescale;
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const float low = exp2f(scores[n][2 * half] - highest), high = exp2f(scores[n][2 * half + 1] - highest);
        total[half] += low + high;
        split(low, high, weights[2 * n + half]);
      }
#pragma unroll
      for (int n = 0; n < kDim / 8; ++n) {
        sums[n][2 * half] *= rescale;
        sums[n][2 * half + 1] *= rescale;
      }
    }
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
      std::uint32_t low[kTerms], high[kTerms];
      split(values[0][n], values[1][n], low);
      split(values[2][n], values[3][n], high);
      multiply_terms(sums[n], weights, low, high);
    }
  }

#pragma unroll
  for (int half = 0; half < 2; ++half) {
    total[half] += shuffle_xor(total[half], 1);
    total[half] += shuffle_xor(total[half], 2);
    const int query = row + 8 * half;
#pragma unroll
    for (int c = 0; c < 2; ++c) {
#pragma unroll
      for (int n = 0; n < kDim / 8; ++n) warp_sums[warp_id()][query][8 * (2 * quarter + c) + n] = sums[n][2 * half + c];
    }
    if (quarter == 0) {
      warp_maxima[warp_id()][query] = maximum[half];
      warp_totals[warp_id()][query] = total[half];
    }
  }
  sync_block();

  const int thread = static_cast<int>(threadIdx.x);
  const int query = thread / (kDim / kGroup), feature = thread % (kDim / kGroup) * kGroup;
  float highest = warp_maxima[0][query];
  for (int warp = 1; warp < kWarps; ++warp) highest = fmaxf(highest, warp_maxima[warp][query]);
  float whole = 0, result[kGroup] = {};
  for (int warp = 0; warp < kWarps; ++warp) {
    const float rescale = exp2f(warp_maxima[warp][query] - highest);
    whole += warp_totals[warp][query] * rescale;
#pragma unroll
    for (int j = 0; j < kGroup; ++j) result[j] += warp_sums[warp][query][feature + j] * rescale;
  }
  if (query >= tile.num_queries) return;
  if (!args.parts.sums) {
#pragma unroll
    for (int j = 0; j < kGroup; ++j) result[j] /= whole;
    float* out = args.out.row(tile.first_query + query) + static_cast<std::int64_t>(head) * args.head_dim;
    store_group(result, out, feature, args.head_dim, args.is_aligned);
    return;
  }
  const std::int64_t at = (static_cast<std::int64_t>(blockIdx.x) * gridDim.y + head) * kQueries + query;
  store_group(result, args.parts.sums + at * kDim, feature, kDim, true);
  if (feature == 0) {
    args.parts.maxima[at] = highest;
    args.parts.totals[at] = whole;
  }
}

/// A warp takes one query and head.
__global__ void __launch_bounds__(kThreads)
    merge_ranges_kernel(Parts parts, const FewQueriesGroup* groups, int head_dim, Rows<float> out) {
  wait_for_earlier_kernels();
  const FewQueriesGroup group = groups[blockIdx.x];
  const int query = static_cast<int>(blockIdx.y) * kWarps + warp_id(), head = static_cast<int>(blockIdx.z);
  if (query >= group.num_queries) return;
  const auto part = [&](int range) {
    return (static_cast<std::int64_t>(group.first_tile + range) * gridDim.z + head) * kQueries + query;
  };
  const bool is_range = lane_id() < group.num_tiles;
  const float maximum = is_range ? parts.maxima[part(lane_id())] : -INFINITY;
  const float highest = warp_maximum(maximum);
  const float rescale = is_range ? exp2f(maximum - highest) : 0.0f;
  const float whole = warp_sum(is_range ? parts.totals[part(lane_id())] * rescale : 0.0f);
  float sums[kDim / kWarpSize] = {};
#pragma unroll 8
  for (int range = 0; range < group.num_tiles; ++range) {
    const float factor = shuffle(rescale, range);
    const float* from = parts.sums + part(range) * kDim;
#pragma unroll
    for (int c = 0; c < kDim / kWarpSize; ++c) sums[c] += from[lane_id() + c * kWarpSize] * factor;
  }
  float* to = out.row(group.first_query + query) + static_cast<std::int64_t>(head) * head_dim;
#pragma unroll
  for (int c = 0; c < kDim / kWarpSize; ++c) {
    const int feature = lane_id() + c * kWarpSize;
    if (feature < head_dim) to[feature] = sums[c] / whole;
  }
}

}  // namespace

void CudaOps::attention_few_queries(const Attention& args) {
  const std::int64_t num_heads = args.query.size(1), head_dim = args.query.size(2);
  const FewQueriesPlan plan = plan_few_queries(borders_of(args.cu_seqlens_q), borders_of(args.cu_seqlens_k));
  const auto num_tiles = std::ssize(plan.tiles), num_groups = std::ssize(plan.groups);
  const Workspace::Scope scope(scratch_);
  Parts parts{};
  if (plan.has_parts()) {
    const FewQueriesScratch taken = take_few_queries_scratch(scratch_, num_tiles * num_heads * kQueries);
    parts = {taken.sums.as<float>(), taken.maxima.as<float>(), taken.totals.as<float>()};
  }
  const bool is_aligned = rows_are_aligned(args.query, args.key, args.value, args.out.plain) && head_dim % 4 == 0;
  const AttentionFewQueries few{const_heads<float>(args.query),
                                const_heads<float>(args.key),
                                const_heads<float>(args.value),
                                staging_.bring(plan.tiles.data(), num_tiles),
                                static_cast<int>(head_dim),
                                static_cast<int>(num_heads / args.key.size(1)),
                                is_aligned,
                                args.scale * 1.4426950408889634f,  // log2(e)
                                parts,
                                rows_of<float>(args.out.plain)};
  launch(
      "attention_few_queries", stream_.get(), early(dim3(blocks_for(num_tiles, 1), blocks_for(num_heads, 1)), kThreads),
      is_aligned && head_dim == kDim ? attention_few_queries_kernel<true> : attention_few_queries_kernel<false>, few);
  if (!parts.sums) return;
  launch("attention_few_queries: ranges", stream_.get(),
         early(dim3(blocks_for(num_groups, 1), blocks_for(kQueries, kWarps), blocks_for(num_heads, 1)), kThreads),
         merge_ranges_kernel, parts, staging_.bring(plan.groups.data(), num_groups), static_cast<int>(head_dim),
         rows_of<float>(args.out.plain));
}

}  // namespace treble::cuda
