#include "cuda/cuda_ops.h"
#include "cuda/launch.cuh"
#include "cuda/rows.cuh"

// A block takes a row (a warp takes a head of the gated norm), in two sweeps: sums, then results. The second sweep
// reads what the same thread has read or written in the first, from cache. Limit: device memory.

namespace treble::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;

template <typename T>
__global__ void __launch_bounds__(kThreads)
    rms_norm_kernel(Rows<T> x, Rows<const T> delta, const bfloat16* weight, float eps, std::int64_t width,
                    bool is_aligned, Rows<T> out) {
  __shared__ float partial[kWarpSize];
  T* row = x.row(blockIdx.x);
  const T* added = delta.data ? delta.row(blockIdx.x) : nullptr;
  float squares = 0;
  for (std::int64_t i = threadIdx.x * kGroup; i < width; i += kThreads * kGroup) {
    float values[kGroup];
    load_group(row, i, width, is_aligned, values);
    if (added) {
      float more[kGroup];
      load_group(added, i, width, is_aligned, more);
#pragma unroll
      for (int j = 0; j < kGroup; ++j) values[j] = round_to<T>(values[j] + more[j]);
      store_group(values, row, i, width, is_aligned);
    }
#pragma unroll
    for (int j = 0; j < kGroup; ++j) squares += values[j] * values[j];
  }
  const float normalise = 1.0f / sqrtf(block_sum(squares, partial) / static_cast<float>(width) + eps);
  for (std::int64_t i = threadIdx.x * kGroup; i < width; i += kThreads * kGroup) {
    float values[kGroup], gain[kGroup];
    load_group(row, i, width, is_aligned, values);
    load_group(weight, i, width, is_aligned, gain);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) values[j] = values[j] * normalise * (1.0f + gain[j]);
    store_group(values, out.row(blockIdx.x), i, width, is_aligned);
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    gated_rms_norm_kernel(Heads<const T> x, Heads<const T> gate, const bfloat16* weight, float eps,
                          std::int64_t num_rows, int num_heads, int head_dim, bool is_aligned, Rows<T> out) {
  const std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * kWarps + warp_id();
  if (item >= num_rows * num_heads) return;
  const std::int64_t token = item / num_heads, head = item % num_heads;
  const T* row = x.row(token, head);
  float squares = 0;
  for (int i = lane_id() * kGroup; i < head_dim; i += kWarpSize * kGroup) {
    float values[kGroup];
    load_group(row, i, head_dim, is_aligned, values);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) squares += values[j] * values[j];
  }
  const float normalise = 1.0f / sqrtf(warp_sum(squares) / static_cast<float>(head_dim) + eps);
  for (int i = lane_id() * kGroup; i < head_dim; i += kWarpSize * kGroup) {
    float values[kGroup], gain[kGroup], gates[kGroup];
    load_group(row, i, head_dim, is_aligned, values);
    load_group(weight, i, head_dim, is_aligned, gain);
    load_group(gate.row(token, head), i, head_dim, is_aligned, gates);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      // The reference rounds before the gain and after it, but not the silu.
      const float weighted = round_to<T>(gain[j] * round_to<T>(values[j] * normalise));
      values[j] = weighted * silu(gates[j]);
    }
    store_group(values, out.row(token) + head * head_dim, i, head_dim, is_aligned);
  }
}

template <typename In, typename Out>
__global__ void __launch_bounds__(kThreads)
    layer_norm_kernel(Rows<In> x, Rows<const In> delta, const bfloat16* weight, const bfloat16* bias, float eps,
                      std::int64_t width, bool is_aligned, Rows<Out> out) {
  __shared__ float partial[kWarpSize];
  In* row = x.row(blockIdx.x);
  const In* added = delta.data ? delta.row(blockIdx.x) : nullptr;
  float total = 0;
  for (std::int64_t i = threadIdx.x * kGroup; i < width; i += kThreads * kGroup) {
    float values[kGroup];
    load_group(row, i, width, is_aligned, values);
    if (added) {
      float more[kGroup];
      load_group(added, i, width, is_aligned, more);
#pragma unroll
      for (int j = 0; j < kGroup; ++j) values[j] = round_to<In>(values[j] + more[j]);
      store_group(values, row, i, width, is_aligned);
    }
#pragma unroll
    for (int j = 0; j < kGroup; ++j) total += values[j];
  }
  const float mean = block_sum(total, partial) / static_cast<float>(width);
  // A sweep of its own: the difference of the two moments would lose the digits that a large mean takes.
  float squares = 0;
  for (std::int64_t i = threadIdx.x * kGroup; i < width; i += kThreads * kGroup) {
    float values[kGroup];
    load_group(row, i, width, is_aligned, values);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) squares += i + j < width ? (values[j] - mean) * (values[j] - mean) : 0.0f;
  }
  const float normalise = 1.0f / sqrtf(block_sum(squares, partial) / static_cast<float>(width) + eps);
  for (std::int64_t i = threadIdx.x * kGroup; i < width; i += kThreads * kGroup) {
    float values[kGroup], gain[kGroup], offset[kGroup];
    load_group(row, i, width, is_aligned, values);
    load_group(weight, i, width, is_aligned, gain);
    load_group(bias, i, width, is_aligned, offset);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) values[j] = (values[j] - mean) * normalise * gain[j] + offset[j];
    store_group(values, out.row(blockIdx.x), i, width, is_aligned);
  }
}

}  // namespace

void CudaOps::do_rms_norm(const RmsNorm& args) {
  const TensorView& out = args.out.plain;
  with_type(args.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch("rms_norm", stream_.get(), {dim3(blocks_for(args.x.size(0), 1)), kThreads}, rms_norm_kernel<T>,
           rows_of<T>(args.x), const_rows<T>(args.delta), args.weight.as<bfloat16>(), args.eps, args.x.size(1),
           rows_are_aligned(args.x, args.delta, args.weight, out), rows_of<T>(out));
  });
}

void CudaOps::do_gated_rms_norm(const GatedRmsNorm& args) {
  const std::int64_t num_rows = args.x.size(0), num_heads = args.x.size(1), head_dim = args.x.size(2);
  const TensorView out = args.out.plain.reshape({num_rows, num_heads, head_dim});
  with_type(args.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch("gated_rms_norm", stream_.get(), {dim3(blocks_for(num_rows * num_heads, kWarps)), kThreads},
           gated_rms_norm_kernel<T>, const_heads<T>(args.x), const_heads<T>(args.gate), args.weight.as<bfloat16>(),
           args.eps, num_rows, static_cast<int>(num_heads), static_cast<int>(head_dim),
           rows_are_aligned(args.x, args.gate, args.weight, out), rows_of<T>(args.out.plain));
  });
}

void CudaOps::do_layer_norm(const LayerNorm& args) {
  const TensorView& out = args.out.plain;
  with_type(args.x.dtype(), [&](auto in_zero) {
    with_type(out.dtype(), [&](auto out_zero) {
      using In = decltype(in_zero);
      using Out = decltype(out_zero);
      launch("layer_norm", stream_.get(), {dim3(blocks_for(args.x.size(0), 1)), kThreads}, layer_norm_kernel<In, Out>,
             rows_of<In>(args.x), const_rows<In>(args.delta), args.weight.as<bfloat16>(), args.bias.as<bfloat16>(),
             args.eps, args.x.size(1), rows_are_aligned(args.x, args.delta, args.weight, args.bias, out),
             rows_of<Out>(out));
    });
  });
}

}  // namespace treble::cuda
