#include <algorithm>

#include "cuda/cuda_ops.h"
#include "cuda/launch.cuh"
#include "cuda/quantize_rows.cuh"

// Rotates and quantises rows that lie in memory. Groups of 256: a block takes a row after the other, each of which is
// read once, while the one before is computed, and stays in registers. Limit: device memory, 3 bytes an element of
// bf16. Other groups: a block takes a row in parts of 4,096 values in shared memory, twice, for its largest value and
// for its codes.

namespace treble::cuda {
namespace {

/// Rows as they lie in memory.
template <int kGroups, typename T>
class PlainRows {
 public:
  static constexpr bool kAhead = reads_ahead<T>(kGroups, 1);

  __device__ __forceinline__ PlainRows(const RowPlace& place, Rows<const T> plain)
      : place_(place), plain_(plain), next_(place.next_rows()) {}

  __device__ __forceinline__ void start(int row, int i) { next_.start(i, at(row, i)); }
  __device__ __forceinline__ void begin(int) {}
  __device__ __forceinline__ void values(int row, int i, float (&x)[16]) {
    if (place_.has(i)) {
      next_.take(i, at(row, i)).unpack(x);
    } else {
#pragma unroll
      for (int j = 0; j < 16; ++j) x[j] = 0;
    }
  }

 private:
  __device__ __forceinline__ const T* at(int row, int i) const {
    return plain_.row(row) + place_.first_value(i);
  }

  const RowPlace& place_;
  Rows<const T> plain_;
  NextRow<T, kAhead> next_;
};

template <int kGroups, typename T>
__global__ void __launch_bounds__(most_threads(kGroups), blocks_at_once(kGroups))
    quantize_group_256_kernel(Rows<const T> plain, int num_rows, int num_groups, QuantizeArgs args) {
  wait_for_earlier_kernels();
  const RowPlace place{num_rows, num_groups};
  PlainRows<kGroups, T> source(place, plain);
  quantize_rows<kGroups>(place, args, source);
}

constexpr int kThreads = 256;
constexpr int kPart = 4096;  // values in shared memory: a multiple of every group

/// Rotates values [0, count) in shared memory.
__device__ __forceinline__ void rotate_part(float* x, int count, int rotation_group) {
  for (int stride = 1; stride < rotation_group; stride *= 4) {
    sync_block();
    for (int i = static_cast<int>(threadIdx.x); i < count / 4; i += kThreads) {
      float* at = x + i / stride * 4 * stride + i % stride;
      rotate_four(at[0], at[stride], at[2 * stride], at[3 * stride]);
    }
  }
  sync_block();
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    quantize_any_group_kernel(Rows<const T> plain, std::int64_t width, int rotation_group, QuantizeArgs args) {
  __shared__ float part[kPart];
  __shared__ float partial[kWarpSize];
  wait_for_earlier_kernels();
  const T* row = plain.row(blockIdx.x);
  /// Calls body(i, rotated value i) for the thread's values.
  const auto for_rotated = [&](const auto& body) {
    for (std::int64_t first = 0; first < width; first += kPart) {
      const int count = static_cast<int>(min(width - first, static_cast<std::int64_t>(kPart)));
      sync_block();  // the part before is read
      for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads)
        part[i] =
            scaled_input(widen(row[first + i]), args.input_factor ? args.input_factor + first + i : nullptr, args.mode);
      rotate_part(part, count, rotation_group);
      for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads)
        body(first + i, args.mode == Int8Activations::kComfyFallback ? round_to<bfloat16>(part[i]) : part[i]);
    }
  };
  float largest = 0;
  for_rotated([&](std::int64_t, float x) { largest = larger_magnitude(largest, x); });
  const float scale = scale_of(block_magnitude(largest, partial));
  const CodeMaker make_code(scale, 1.0f, args.mode);
  if (threadIdx.x == 0) args.scale[blockIdx.x] = scale;
  std::int8_t* codes = args.codes.row(blockIdx.x);
  for_rotated([&](std::int64_t i, float x) {
    codes[i] = make_code.is_undefined() ? std::int8_t{0} : static_cast<std::int8_t>(make_code(x));
  });
}

}  // namespace

void CudaOps::quantize(const TensorView& plain, const QuantizedInput& out) {
  if (!out || plain.size(0) == 0 || plain.size(1) == 0) return;
  const std::int64_t num_rows = plain.size(0), width = plain.size(1);
  const QuantizeArgs args = quantize_args(out, options_.int8_activations);
  const QuantizerShape shape{width, out.rotation_group, rows_are_aligned(plain, out.codes)};
  with_type(plain.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if (choose_quantizer(shape) == Quantizer::kAnyGroup) {
      launch("quantize_rows: any group", stream_.get(), early(dim3(blocks_for(num_rows, 1)), kThreads),
             quantize_any_group_kernel<T>, const_rows<T>(plain), width, static_cast<int>(out.rotation_group), args);
      return;
    }
    const auto next_row_bytes = [](int groups) { return reads_ahead<T>(groups, 1) ? NextRow<T, true>::kBytes : 0; };
    with_group_256_launch(num_rows, width, {num_sms_, shared_bytes_per_block_}, next_row_bytes,
                          [&](auto groups, const LaunchShape& launch_shape) {
                            launch("quantize_rows", stream_.get(), launch_shape,
                                   quantize_group_256_kernel<decltype(groups)::value, T>, const_rows<T>(plain),
                                   static_cast<int>(num_rows), groups_of_256(width), args);
                          });
  });
}

TensorView CudaOps::plain_of(const LinearInput& out, DType dtype) {
  if (out.plain || !out.quantized) return out.plain;
  return scratch_.take(dtype, {out.num_rows(), out.width()});
}

}  // namespace treble::cuda
