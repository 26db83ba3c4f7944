#include "cuda/cuda_ops.h"
#include "cuda/launch.cuh"
#include "cuda/rows.cuh"

// What only the vision tower needs; a block takes a row. Limit: device memory.

namespace treble::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kTaps = 4;

template <typename T>
__global__ void __launch_bounds__(kThreads)
    scatter_rows_kernel(Rows<const T> rows, const std::int32_t* index, std::int64_t width, bool is_aligned, Rows<T> x) {
  for (std::int64_t i = threadIdx.x * kGroup; i < width; i += kThreads * kGroup) {
    float values[kGroup];
    load_group(rows.row(blockIdx.x), i, width, is_aligned, values);
    store_group(values, x.row(index[blockIdx.x]), i, width, is_aligned);
  }
}

/// A block takes a patch; a thread reads a level once, also where it fills two frames.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    normalize_patches_kernel(const std::uint8_t* levels, int num_frames, int num_pixels, float3 mean, float3 deviation,
                             T* out) {
  constexpr int kFrames = 2, kChannels = 3;
  const std::uint8_t* patch = levels + static_cast<std::int64_t>(blockIdx.x) * kChannels * num_frames * num_pixels;
  T* to = out + static_cast<std::int64_t>(blockIdx.x) * kChannels * kFrames * num_pixels;
  for (int i = static_cast<int>(threadIdx.x); i < kChannels * num_frames * num_pixels; i += kThreads) {
    const int pixel = i % num_pixels, frame = i / num_pixels % num_frames, channel = i / num_pixels / num_frames;
    const float middle = channel == 0 ? mean.x : channel == 1 ? mean.y : mean.z;
    const float width = channel == 0 ? deviation.x : channel == 1 ? deviation.y : deviation.z;
    const T value = narrow<T>((static_cast<float>(patch[i]) - middle) / width);
    T* row = to + (channel * kFrames + frame) * num_pixels + pixel;
    row[0] = value;
    if (num_frames < kFrames) row[num_pixels] = value;
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    add_interpolated_rows_kernel(Rows<T> x, Rows<const bfloat16> table, const std::int32_t* index, const float* weights,
                                 std::int64_t width, bool is_aligned) {
  T* row = x.row(blockIdx.x);
  for (std::int64_t i = threadIdx.x * kGroup; i < width; i += kThreads * kGroup) {
    float sum[kGroup] = {};
    for (int tap = 0; tap < kTaps; ++tap) {
      float values[kGroup];
      load_group(table.row(index[blockIdx.x * kTaps + tap]), i, width, is_aligned, values);
      const float weight = weights[blockIdx.x * kTaps + tap];
#pragma unroll
      for (int j = 0; j < kGroup; ++j) sum[j] += weight * values[j];
    }
    float values[kGroup];
    load_group(row, i, width, is_aligned, values);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) values[j] += round_to<T>(sum[j]);
    store_group(values, row, i, width, is_aligned);
  }
}

}  // namespace

void CudaOps::do_scatter_rows(const ScatterRows& args) {
  const std::int64_t num_rows = args.rows.size(0);
  if (num_rows == 0) return;
  const std::int32_t* index = staging_.bring(args.index.as<std::int32_t>(), num_rows);
  with_type(args.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch("scatter_rows", stream_.get(), {dim3(blocks_for(num_rows, 1)), kThreads}, scatter_rows_kernel<T>,
           const_rows<T>(args.rows), index, args.x.size(1), rows_are_aligned(args.rows, args.x), rows_of<T>(args.x));
  });
}

void CudaOps::do_normalize_patches(const NormalizePatches& args) {
  const auto [r_mean, g_mean, b_mean] = args.mean;
  const auto [r_deviation, g_deviation, b_deviation] = args.deviation;
  with_type(args.out.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch("normalize_patches", stream_.get(), {dim3(blocks_for(args.out.size(0), 1)), kThreads},
           normalize_patches_kernel<T>, args.levels.as<std::uint8_t>(), static_cast<int>(args.levels.size(2)),
           static_cast<int>(args.out.size(3)), make_float3(r_mean, g_mean, b_mean),
           make_float3(r_deviation, g_deviation, b_deviation), args.out.as<T>());
  });
}

void CudaOps::do_add_interpolated_rows(const AddInterpolatedRows& args) {
  const std::int64_t num_rows = args.x.size(0);
  if (num_rows == 0) return;
  const std::int32_t* index = staging_.bring(args.index.as<std::int32_t>(), num_rows * kTaps);
  const float* weights = staging_.bring(args.weights.as<float>(), num_rows * kTaps);
  with_type(args.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch("add_interpolated_rows", stream_.get(), {dim3(blocks_for(num_rows, 1)), kThreads},
           add_interpolated_rows_kernel<T>, rows_of<T>(args.x), const_rows<bfloat16>(args.table), index, weights,
           args.x.size(1), rows_are_aligned(args.x, args.table));
  });
}

}  // namespace treble::cuda
