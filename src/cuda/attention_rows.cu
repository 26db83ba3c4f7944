#include <treble/error.h>

#include <string>

#include "cuda/choose_attention.h"
#include "cuda/cuda_ops.h"
#include "cuda/launch.cuh"
#include "cuda/rows.cuh"

// Softmax attention in fp32. A block takes one query row and head; each of its warps takes every fourth block of 32
// keys, a key in each lane for the scores and a feature in each lane for the values, with a running maximum as in
// arXiv:2205.14135; the warps' parts are put together at the end. Limit: instructions; for few queries of many keys it
// is latency.

namespace treble::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpSize;

template <typename T>
struct AttentionRows {
  Heads<const T> query, key, value, gate;
  const std::int32_t* cu_seqlens_q;
  const std::int32_t* cu_seqlens_k;
  int num_seqs, head_dim, group;
  bool causal, is_aligned;
  float scale;
  Rows<T> out;
};

/// @tparam kFeatures  a lane's features of the result: head_dim is at most 32 kFeatures
template <typename T, int kFeatures>
__global__ void __launch_bounds__(kThreads) attention_rows_kernel(AttentionRows<T> args) {
  const int head_dim = args.head_dim;
  const auto row = static_cast<std::int32_t>(blockIdx.x);
  const int head = static_cast<int>(blockIdx.y), kv_head = head / args.group;
  float* query = reinterpret_cast<float*>(dynamic_shared());         // [head_dim]
  float* parts = query + (head_dim + kGroup - 1) / kGroup * kGroup;  // [kWarps, head_dim]
  float* maxima = parts + kWarps * head_dim;                         // [kWarps]
  float* totals = maxima + kWarps;                                   // [kWarps]

  for (int i = static_cast<int>(threadIdx.x); i < (head_dim + kGroup - 1) / kGroup * kGroup; i += kThreads)
    query[i] = i < head_dim ? widen(args.query.row(row, head)[i]) * args.scale : 0.0f;
  sync_block();

  const int sequence = sequence_of(args.cu_seqlens_q, args.num_seqs, row);
  const std::int32_t begin = args.cu_seqlens_k[sequence];
  const std::int32_t rows_after = args.cu_seqlens_q[sequence + 1] - 1 - row;
  const std::int32_t end = args.cu_seqlens_k[sequence + 1] - (args.causal ? rows_after : 0);

  float maximum = -INFINITY, total = 0, sums[kFeatures] = {};
  for (std::int32_t first = begin + warp_id() * kWarpSize; first < end; first += kThreads) {
    const std::int32_t key = first + lane_id();
    float score = -INFINITY;
    if (key < end) {
      score = 0;
      const T* features = args.key.row(key, kv_head);
      for (int i = 0; i < head_dim; i += kGroup) {
        float values[kGroup];
        load_group(features, i, head_dim, args.is_aligned, values);
#pragma unroll
        for (int j = 0; j < kGroup; ++j) score += query[i + j] * values[j];
      }
    }
    const float higher = fmaxf(maximum, warp_maximum(score));
    const float weight = expf(score - higher), rescale = expf(maximum - higher);
    total = total * rescale + warp_sum(weight);
    maximum = higher;
#pragma unroll
    for (int c = 0; c < kFeatures; ++c) sums[c] *= rescale;
    const int num_keys = min(end - first, kWarpSize);
    for (int j = 0; j < num_keys; ++j) {
      const float of_key = shuffle(weight, j);
      const T* features = args.value.row(first + j, kv_head);
#pragma unroll
      for (int c = 0; c < kFeatures; ++c) {
        const int feature = lane_id() + c * kWarpSize;
        if (feature < head_dim) sums[c] += of_key * widen(features[feature]);
      }
    }
  }

#pragma unroll
  for (int c = 0; c < kFeatures; ++c) {
    const int feature = lane_id() + c * kWarpSize;
    if (feature < head_dim) parts[warp_id() * head_dim + feature] = sums[c];
  }
  if (lane_id() == 0) {
    maxima[warp_id()] = maximum;
    totals[warp_id()] = total;
  }
  sync_block();

  float highest = maxima[0];
  for (int warp = 1; warp < kWarps; ++warp) highest = fmaxf(highest, maxima[warp]);
  float scales[kWarps], whole = 0;
  for (int warp = 0; warp < kWarps; ++warp) {
    scales[warp] = expf(maxima[warp] - highest);
    whole += totals[warp] * scales[warp];
  }
  T* out = args.out.row(row) + static_cast<std::int64_t>(head) * head_dim;
  for (int i = static_cast<int>(threadIdx.x); i < head_dim; i += kThreads) {
    float x = 0;
    for (int warp = 0; warp < kWarps; ++warp) x += parts[warp * head_dim + i] * scales[warp];
    x /= whole;
    if (args.gate.data) x = round_to<T>(x) * round_to<T>(sigmoid(widen(args.gate.row(row, head)[i])));
    out[i] = narrow<T>(x);
  }
}

template <typename T>
using Kernel = void (*)(AttentionRows<T>);

template <typename T>
Kernel<T> kernel_for(std::int64_t head_dim) {
  if (head_dim <= 2 * kWarpSize) return attention_rows_kernel<T, 2>;
  if (head_dim <= 8 * kWarpSize) return attention_rows_kernel<T, 8>;
  if (head_dim <= 32 * kWarpSize) return attention_rows_kernel<T, 32>;
  throw Error(ErrorCode::kInternal, "cuda: attention: heads of " + std::to_string(head_dim) +
                                        " features, expected at most " + std::to_string(32 * kWarpSize));
}

}  // namespace

void CudaOps::do_attention(const Attention& args) {
  if (args.query.size(0) == 0) return;
  // A row's scale needs all of its heads, which are of several blocks.
  const Workspace::Scope scope(scratch_);
  Attention plain = args;
  plain.out = plain_of(args.out, args.query.dtype());
  attend(plain);
  quantize(plain.out.plain, args.out.quantized);
}

void CudaOps::attend(const Attention& args) {
  const AttentionShape shape{args.query.dtype(),
                             args.query.size(0),
                             args.query.size(2),
                             rows_are_aligned(args.query, args.key, args.value, args.gate, args.out.plain),
                             args.scale > 0,
                             args.causal,
                             static_cast<bool>(args.gate)};
  switch (choose_attention(shape, compute_capability_, options_.kernels)) {
    case AttentionKernel::kRows:
      return attention_rows(args);
    case AttentionKernel::kFewQueries:
      return attention_few_queries(args);
    case AttentionKernel::kMmaSm80:
      return attention_mma_sm80(args);
    case AttentionKernel::kWgmmaSm90:
      return attention_wgmma_sm90(args);
  }
}

void CudaOps::attention_rows(const Attention& args) {
  const std::int64_t num_queries = args.query.size(0), num_q_heads = args.query.size(1), head_dim = args.query.size(2);
  const std::int64_t num_borders = args.cu_seqlens_q.size(0);
  const std::int64_t padded = (head_dim + kGroup - 1) / kGroup * kGroup;
  const std::size_t shared_bytes = static_cast<std::size_t>(padded + kWarps * (head_dim + 2)) * sizeof(float);
  with_type(args.query.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const AttentionRows<T> rows{const_heads<T>(args.query),
                                const_heads<T>(args.key),
                                const_heads<T>(args.value),
                                const_heads<T>(args.gate),
                                staging_.bring(args.cu_seqlens_q.as<std::int32_t>(), num_borders),
                                staging_.bring(args.cu_seqlens_k.as<std::int32_t>(), num_borders),
                                static_cast<int>(num_borders - 1),
                                static_cast<int>(head_dim),
                                static_cast<int>(num_q_heads / args.key.size(1)),
                                args.causal,
                                rows_are_aligned(args.key),
                                args.scale,
                                rows_of<T>(args.out.plain)};
    launch("attention_rows", stream_.get(),
           {dim3(blocks_for(num_queries, 1), blocks_for(num_q_heads, 1)), kThreads, shared_bytes},
           kernel_for<T>(head_dim), rows);
  });
}

}  // namespace treble::cuda
