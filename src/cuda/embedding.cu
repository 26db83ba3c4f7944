#include "cuda/cuda_ops.h"
#include "cuda/launch.cuh"
#include "cuda/rows.cuh"

// A block copies one row. The table may lie in pinned host memory: then the rows come over the bus, once each.

namespace treble::cuda {
namespace {

constexpr int kThreads = 256;

template <typename T>
__global__ void __launch_bounds__(kThreads) embedding_kernel(const std::int32_t* ids, Rows<const bfloat16> table,
                                                             std::int64_t width, bool is_aligned, Rows<T> out) {
  const bfloat16* from = table.row(ids[blockIdx.x]);
  T* to = out.row(blockIdx.x);
  for (std::int64_t i = threadIdx.x * kGroup; i < width; i += kThreads * kGroup) {
    float values[kGroup];
    load_group(from, i, width, is_aligned, values);
    store_group(values, to, i, width, is_aligned);
  }
}

}  // namespace

void CudaOps::do_embedding(const Embedding& args) {
  with_type(args.out.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch("embedding", stream_.get(), {dim3(blocks_for(args.ids.size(0), 1)), kThreads}, embedding_kernel<T>,
           args.ids.as<std::int32_t>(), const_rows<bfloat16>(args.table), args.table.size(1),
           rows_are_aligned(args.table, args.out), rows_of<T>(args.out));
  });
}

}  // namespace treble::cuda
