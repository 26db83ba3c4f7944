#include <algorithm>

#include "cuda/cuda_ops.h"
#include "cuda/launch.cuh"
#include "cuda/rows.cuh"

// A block takes a row, eight elements a thread, which stay in registers from the sum to the result; of rows wider than
// the largest block the rest is read again. A half warp takes a head of the gated norm. Limit: device memory.

namespace treble::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kRowThreads = 640;  // at most for a row; 5,120 elements at eight a thread
constexpr int kRowsAtOnce = 2;    // in a multiprocessor at least, so that one reads while another sums up

/// Threads for a row, whole warps.
int threads_for_row(std::int64_t width) {
  const std::int64_t warps = (width + kGroup * kWarpSize - 1) / (kGroup * kWarpSize);
  return static_cast<int>(std::clamp<std::int64_t>(warps * kWarpSize, kWarpSize, kRowThreads));
}

/// @return the sum of squares
template <typename T>
__device__ __forceinline__ float load_and_keep(const T* row, std::int64_t i, std::int64_t width, bool is_aligned,
                                               PackedGroup<T>& kept) {
  kept.load(row, i, width, is_aligned);
  float values[kGroup];
  kept.unpack(values);
  float squares = 0;
#pragma unroll
  for (int j = 0; j < kGroup; ++j) squares += values[j] * values[j];
  return squares;
}

template <typename T>
__device__ __forceinline__ void scale_and_store(const PackedGroup<T>& kept, float normalise,
                                                const PackedGroup<bfloat16>& gain, T* out, std::int64_t i,
                                                std::int64_t width, bool is_aligned) {
  float values[kGroup], gains[kGroup];
  kept.unpack(values);
  gain.unpack(gains);
#pragma unroll
  for (int j = 0; j < kGroup; ++j) values[j] = values[j] * normalise * (1.0f + gains[j]);
  store_group(values, out, i, width, is_aligned);
}

template <typename T>
__global__ void __launch_bounds__(kRowThreads, kRowsAtOnce)
    rms_norm_kernel(Rows<const T> x, const bfloat16* weight, float eps, std::int64_t width, bool is_aligned,
                    Rows<T> out) {
  __shared__ float partial[kWarpSize];
  wait_for_earlier_kernels();
  const T* row = x.row(blockIdx.x);
  const std::int64_t own = threadIdx.x * kGroup, step = static_cast<std::int64_t>(blockDim.x) * kGroup;
  PackedGroup<bfloat16> gain;
  PackedGroup<T> kept;
  gain.load(weight, own, width, is_aligned);
  float squares = load_and_keep(row, own, width, is_aligned, kept);
  for (std::int64_t i = own + step; i < width; i += step) {
    PackedGroup<T> more;
    squares += load_and_keep(row, i, width, is_aligned, more);
  }
  const float normalise = 1.0f / sqrtf(block_sum(squares, partial) / static_cast<float>(width) + eps);
  scale_and_store(kept, normalise, gain, out.row(blockIdx.x), own, width, is_aligned);
  for (std::int64_t i = own + step; i < width; i += step) {
    kept.load(row, i, width, is_aligned);
    gain.load(weight, i, width, is_aligned);
    scale_and_store(kept, normalise, gain, out.row(blockIdx.x), i, width, is_aligned);
  }
}

constexpr int kLanes = kWarpSize / 2;              // of a head
constexpr int kHeadsPerBlock = kThreads / kLanes;  // of one token

template <typename T>
__global__ void __launch_bounds__(kThreads)
    gated_rms_norm_kernel(Heads<const T> x, Heads<const T> gate, const bfloat16* weight, float eps, int num_heads,
                          int head_dim, bool is_aligned, Rows<T> out) {
  const int head = static_cast<int>(blockIdx.y) * kHeadsPerBlock + static_cast<int>(threadIdx.x) / kLanes;
  const int first = static_cast<int>(threadIdx.x) % kLanes * kGroup;
  const bool is_there = head < num_heads;  // the others help with the sums
  const std::int64_t token = blockIdx.x;
  const T* row = x.row(token, is_there ? head : 0);
  const T* gate_row = gate.row(token, is_there ? head : 0);
  float squares = 0, kept[kGroup], gates[kGroup];
  wait_for_earlier_kernels();
  load_group(row, first, head_dim, is_aligned, kept);
  load_group(gate_row, first, head_dim, is_aligned, gates);
#pragma unroll
  for (int j = 0; j < kGroup; ++j) squares += kept[j] * kept[j];
  for (int i = first + kLanes * kGroup; i < head_dim; i += kLanes * kGroup) {
    float values[kGroup];
    load_group(row, i, head_dim, is_aligned, values);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) squares += values[j] * values[j];
  }
#pragma unroll
  for (int mask = kLanes / 2; mask > 0; mask /= 2) squares += shuffle_xor(squares, mask);
  const float normalise = 1.0f / sqrtf(squares / static_cast<float>(head_dim) + eps);
  if (!is_there) return;
  for (int i = first; i < head_dim; i += kLanes * kGroup) {
    float gain[kGroup];
    load_group(weight, i, head_dim, is_aligned, gain);
    if (i > first) {
      load_group(row, i, head_dim, is_aligned, kept);
      load_group(gate_row, i, head_dim, is_aligned, gates);
    }
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      // The reference rounds before the gain and after it, but not the silu.
      kept[j] = round_to<T>(gain[j] * round_to<T>(kept[j] * normalise)) * silu_as<T>(gates[j]);
    }
    store_group(kept, out.row(token) + static_cast<std::int64_t>(head) * head_dim, i, head_dim, is_aligned);
  }
}

template <typename In, typename Out>
__global__ void __launch_bounds__(kThreads)
    layer_norm_kernel(Rows<In> x, Rows<const In> delta, const bfloat16* weight, const bfloat16* bias, float eps,
                      std::int64_t width, bool is_aligned, Rows<Out> out) {
  __shared__ float partial[kWarpSize];
  wait_for_earlier_kernels();
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
  if (args.x.size(0) == 0 || rms_norm_int8(args)) return;
  const Workspace::Scope scope(scratch_);
  const TensorView out = plain_of(args.out, args.x.dtype());
  with_type(args.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch("rms_norm", stream_.get(),
           {.grid = dim3(blocks_for(args.x.size(0), 1)),
            .num_threads = threads_for_row(args.x.size(1)),
            .starts_early = true},
           rms_norm_kernel<T>, const_rows<T>(args.x), args.weight.as<bfloat16>(), args.eps, args.x.size(1),
           rows_are_aligned(args.x, args.weight, out), rows_of<T>(out));
  });
  quantize(out, args.out.quantized);
}

void CudaOps::do_gated_rms_norm(const GatedRmsNorm& args) {
  if (args.x.size(0) == 0 || gated_rms_norm_int8(args)) return;
  const Workspace::Scope scope(scratch_);
  const std::int64_t num_rows = args.x.size(0), num_heads = args.x.size(1), head_dim = args.x.size(2);
  const TensorView plain = plain_of(args.out, args.x.dtype());
  with_type(args.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch("gated_rms_norm", stream_.get(),
           {.grid = dim3(blocks_for(num_rows, 1), blocks_for(num_heads, kHeadsPerBlock)),
            .num_threads = kThreads,
            .starts_early = true},
           gated_rms_norm_kernel<T>, const_heads<T>(args.x), const_heads<T>(args.gate), args.weight.as<bfloat16>(),
           args.eps, static_cast<int>(num_heads), static_cast<int>(head_dim),
           rows_are_aligned(args.x, args.gate, args.weight, plain.reshape({num_rows, num_heads, head_dim})),
           rows_of<T>(plain));
  });
  quantize(plain, args.out.quantized);
}

void CudaOps::do_layer_norm(const LayerNorm& args) {
  const Workspace::Scope scope(scratch_);
  const TensorView out = plain_of(args.out, activation_dtype());
  with_type(args.x.dtype(), [&](auto in_zero) {
    with_type(out.dtype(), [&](auto out_zero) {
      using In = decltype(in_zero);
      using Out = decltype(out_zero);
      launch("layer_norm", stream_.get(),
             {.grid = dim3(blocks_for(args.x.size(0), 1)), .num_threads = kThreads, .starts_early = true},
             layer_norm_kernel<In, Out>, rows_of<In>(args.x), const_rows<In>(args.delta), args.weight.as<bfloat16>(),
             args.bias.as<bfloat16>(), args.eps, args.x.size(1),
             rows_are_aligned(args.x, args.delta, args.weight, args.bias, out), rows_of<Out>(out));
    });
  });
  quantize(out, args.out.quantized);
}

}  // namespace treble::cuda
