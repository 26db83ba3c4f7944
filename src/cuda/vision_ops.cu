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
