#include "cuda/cuda_ops.h"
#include "cuda/launch.cuh"
#include "cuda/quantize_row.cuh"

// Producers whose rows INT8 Linears read, in groups of 256: norms and SwiGLU write codes and scale themselves, and the
// plain row only where another reads it. A block takes a row. What is quantised is what the plain row would hold,
// rounded to the activations' type. Limit: device memory.

namespace treble::cuda {
namespace {

constexpr int kValues = Group256::kValues;

/// Where a lane's values of a group begin.
__device__ __forceinline__ std::int64_t first_value(std::int64_t group, int lane) {
  return group * Group256::kWidth + lane * kValues;
}

template <int kGroups, typename T>
__global__ void __launch_bounds__(kQuantizerThreads)
    rms_norm_int8_kernel(Rows<const T> x, const bfloat16* weight, float eps, std::int64_t num_groups, Rows<T> plain,
                         QuantizeArgs args) {
  __shared__ float partial[kWarpSize];
  wait_for_earlier_kernels();
  const T* row = x.row(blockIdx.x);
  const std::int64_t width = num_groups * Group256::kWidth;
  const int own = static_cast<int>(threadIdx.x) / Group256::kLanes, own_lane = lane_id() % Group256::kLanes;
  const int num_halves = static_cast<int>(blockDim.x) / Group256::kLanes;
  PackedGroup<T> kept[kGroups][kValues / kGroup];
  float squares = 0;
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
#pragma unroll
    for (int part = 0; part < kValues / kGroup; ++part) {
      const std::int64_t i = first_value(own + static_cast<std::int64_t>(g) * num_halves, own_lane) + part * kGroup;
      float values[kGroup];
      kept[g][part].load(row, i, width, true);
      kept[g][part].unpack(values);
#pragma unroll
      for (int j = 0; j < kGroup; ++j) squares += values[j] * values[j];
    }
  }
  const float normalise = 1.0f / sqrtf(block_sum(squares, partial) / static_cast<float>(width) + eps);
  quantize_row<kGroups>(args, blockIdx.x, num_groups, [&](int g, std::int64_t group, int lane, float(&out)[kValues]) {
    const std::int64_t first = first_value(group, lane);
#pragma unroll
    for (int part = 0; part < kValues / kGroup; ++part) {
      float values[kGroup], gains[kGroup];
      kept[g][part].unpack(values);
      load_group(weight, first + part * kGroup, width, true, gains);
#pragma unroll
      for (int j = 0; j < kGroup; ++j) values[j] = round_to<T>(values[j] * normalise * (1.0f + gains[j]));
      if (plain.data) store_group(values, plain.row(blockIdx.x), first + part * kGroup, width, true);
#pragma unroll
      for (int j = 0; j < kGroup; ++j) out[part * kGroup + j] = values[j];
    }
  });
}

constexpr int kHeadDim = 128;  // of gated_norm_quantizes()

template <int kGroups, typename T>
__global__ void __launch_bounds__(kQuantizerThreads)
    gated_rms_norm_int8_kernel(Heads<const T> x, Heads<const T> gate, const bfloat16* weight, float eps,
                               std::int64_t num_groups, Rows<T> plain, QuantizeArgs args) {
  constexpr int kLanes = kHeadDim / kValues;  // of a head
  wait_for_earlier_kernels();
  quantize_row<kGroups>(args, blockIdx.x, num_groups, [&](int, std::int64_t group, int lane, float(&out)[kValues]) {
    const bool is_there = group < num_groups;  // the others help with the sums
    const std::int64_t head = is_there ? group * (Group256::kWidth / kHeadDim) + lane / kLanes : 0;
    const int first = lane % kLanes * kValues;
    float gates[kValues], gains[kValues];
    load_sixteen(x.row(blockIdx.x, head) + first, out);
    load_sixteen(gate.row(blockIdx.x, head) + first, gates);
    load_sixteen(weight + first, gains);
    float squares = 0;
#pragma unroll
    for (int j = 0; j < kValues; ++j) squares += out[j] * out[j];
#pragma unroll
    for (int mask = kLanes / 2; mask > 0; mask /= 2) squares += shuffle_xor(squares, mask);
    const float normalise = 1.0f / sqrtf(squares / static_cast<float>(kHeadDim) + eps);
#pragma unroll
    for (int j = 0; j < kValues; ++j) {
      // The reference rounds before the gain and after it, but not the silu.
      out[j] = round_to<T>(round_to<T>(gains[j] * round_to<T>(out[j] * normalise)) * silu_as<T>(gates[j]));
    }
    if (plain.data && is_there) store_sixteen(out, plain.row(blockIdx.x) + first_value(group, lane));
  });
}

template <int kGroups, typename T>
__global__ void __launch_bounds__(most_threads(kGroups), blocks_at_once(kGroups))
    swiglu_int8_kernel(Rows<const T> gate, Rows<const T> up, std::int64_t num_groups, Rows<T> plain,
                       QuantizeArgs args) {
  wait_for_earlier_kernels();
  quantize_row<kGroups>(args, blockIdx.x, num_groups, [&](int, std::int64_t group, int lane, float(&out)[kValues]) {
    const bool is_there = group < num_groups;
    const std::int64_t first = first_value(is_there ? group : 0, lane);
    float ups[kValues];
    load_sixteen(gate.row(blockIdx.x) + first, out);
    load_sixteen(up.row(blockIdx.x) + first, ups);
#pragma unroll
    for (int j = 0; j < kValues; ++j) out[j] = round_to<T>(round_to<T>(silu_as<T>(out[j])) * ups[j]);
    if (plain.data && is_there) store_sixteen(out, plain.row(blockIdx.x) + first);
  });
}

bool fits_group_256(const QuantizedInput& out, bool is_aligned) {
  return out && choose_quantizer({out.codes.size(1), out.rotation_group, is_aligned}) == Quantizer::kGroup256;
}

}  // namespace

bool CudaOps::rms_norm_int8(const RmsNorm& args) {
  const QuantizedInput& out = args.out.quantized;
  if (!fits_group_256(out, rows_are_aligned(args.x, args.weight, args.out.plain, out.codes))) return false;
  const std::int64_t width = args.x.size(1);
  with_type(args.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    with_group_256_launch(args.x.size(0), width, [&](auto groups, const LaunchShape& shape) {
      launch("rms_norm_int8", stream_.get(), shape, rms_norm_int8_kernel<decltype(groups)::value, T>,
             const_rows<T>(args.x), args.weight.as<bfloat16>(), args.eps, width / Group256::kWidth,
             rows_of<T>(args.out.plain), quantize_args(out, options_.int8_activations));
    });
  });
  return true;
}

bool CudaOps::gated_rms_norm_int8(const GatedRmsNorm& args) {
  const QuantizedInput& out = args.out.quantized;
  const bool is_aligned = rows_are_aligned(args.x, args.gate, args.weight, args.out.plain, out.codes);
  if (!gated_norm_quantizes(args.x.size(2)) || !fits_group_256(out, is_aligned)) return false;
  const std::int64_t width = args.x.size(1) * args.x.size(2);
  with_type(args.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    with_group_256_launch(args.x.size(0), width, [&](auto groups, const LaunchShape& shape) {
      launch("gated_rms_norm_int8", stream_.get(), shape, gated_rms_norm_int8_kernel<decltype(groups)::value, T>,
             const_heads<T>(args.x), const_heads<T>(args.gate), args.weight.as<bfloat16>(), args.eps,
             width / Group256::kWidth, rows_of<T>(args.out.plain), quantize_args(out, options_.int8_activations));
    });
  });
  return true;
}

bool CudaOps::swiglu_int8(const TensorView& gate, const TensorView& up, const LinearInput& out) {
  if (!fits_group_256(out.quantized, rows_are_aligned(gate, up, out.plain, out.quantized.codes))) return false;
  with_type(gate.dtype(), [&](auto zero) {
    using T = decltype(zero);
    with_group_256_launch(gate.size(0), gate.size(1), [&](auto groups, const LaunchShape& shape) {
      launch("swiglu_int8", stream_.get(), shape, swiglu_int8_kernel<decltype(groups)::value, T>, const_rows<T>(gate),
             const_rows<T>(up), gate.size(1) / Group256::kWidth, rows_of<T>(out.plain),
             quantize_args(out.quantized, options_.int8_activations));
    });
  });
  return true;
}

}  // namespace treble::cuda
