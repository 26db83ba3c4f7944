#include "cuda/cuda_ops.h"
#include "cuda/launch.cuh"
#include "cuda/rows.cuh"

// Products of any size and alignment. A block computes 64 tokens x 64 outputs from tiles of 16 inputs that it keeps in
// shared memory as fp32; a thread keeps 4 x 4 sums. Limit: fp32 arithmetic.

namespace treble::cuda {
namespace {

constexpr int kTile = 64;
constexpr int kInputs = 16;
constexpr int kThreads = 256;
constexpr int kSums = 4;  // a thread's rows and columns

template <typename In, typename Out>
__global__ void __launch_bounds__(kThreads)
    linear_tiles_kernel(Rows<const In> input, Rows<const bfloat16> weight, const bfloat16* bias,
                        std::int64_t num_tokens, std::int64_t out_features, std::int64_t in_features, Rows<Out> out) {
  __shared__ float tokens[kInputs][kTile + 4];
  __shared__ float outputs[kInputs][kTile + 4];
  const std::int64_t first_token = static_cast<std::int64_t>(blockIdx.x) * kTile;
  const std::int64_t first_output = static_cast<std::int64_t>(blockIdx.y) * kTile;
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / (kTile / kSums) * kSums, column = thread % (kTile / kSums) * kSums;
  float sums[kSums][kSums] = {};
  for (std::int64_t k = 0; k < in_features; k += kInputs) {
    for (int i = thread; i < kTile * kInputs; i += kThreads) {
      const int at = i / kInputs, input_at = i % kInputs;
      const bool is_input = k + input_at < in_features;
      const std::int64_t token = first_token + at, output = first_output + at;
      tokens[input_at][at] = is_input && token < num_tokens ? widen(input.row(token)[k + input_at]) : 0.0f;
      outputs[input_at][at] = is_input && output < out_features ? widen(weight.row(output)[k + input_at]) : 0.0f;
    }
    sync_block();
#pragma unroll
    for (int i = 0; i < kInputs; ++i) {
#pragma unroll
      for (int r = 0; r < kSums; ++r) {
#pragma unroll
        for (int c = 0; c < kSums; ++c) sums[r][c] += tokens[i][row + r] * outputs[i][column + c];
      }
    }
    sync_block();
  }
  for (int r = 0; r < kSums; ++r) {
    for (int c = 0; c < kSums; ++c) {
      const std::int64_t token = first_token + row + r, output = first_output + column + c;
      if (token < num_tokens && output < out_features)
        out.row(token)[output] = narrow<Out>(sums[r][c] + (bias ? widen(bias[output]) : 0.0f));
    }
  }
}

}  // namespace

void CudaOps::multiply_tiles(const TensorView& input, const LinearRun& run) {
  const std::int64_t num_tokens = input.size(0), in_features = input.size(1);
  const TensorView& bias = run.first->bias;
  with_type(input.dtype(), [&](auto in_zero) {
    with_type(run.out_dtype, [&](auto out_zero) {
      using In = decltype(in_zero);
      using Out = decltype(out_zero);
      launch("linear_tiles", stream_.get(),
             {dim3(blocks_for(num_tokens, kTile), blocks_for(run.out_features, kTile)), kThreads},
             linear_tiles_kernel<In, Out>, const_rows<In>(input),
             Rows<const bfloat16>{run.first->weight.template as<bfloat16>(), in_features},
             bias ? bias.template as<bfloat16>() : nullptr, num_tokens, run.out_features, in_features,
             Rows<Out>{static_cast<Out*>(run.out), run.out_stride});
    });
  });
}

}  // namespace treble::cuda
