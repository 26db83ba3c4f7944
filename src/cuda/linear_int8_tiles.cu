#include "cuda/int8_epilogue.cuh"
#include "cuda/launch.cuh"
#include "cuda/linear_int8.h"

// Products of 8-bit codes of any size and alignment. A block computes 64 tokens x 64 outputs from tiles of 32 inputs in
// shared memory; a thread keeps 4 x 4 sums. Limit: the multiply-add of 32 bits.

namespace treble::cuda {
namespace {

constexpr int kTile = 64;
constexpr int kInputs = 32;
constexpr int kThreads = 256;
constexpr int kSums = 4;  // a thread's rows and columns

template <typename Out>
__global__ void __launch_bounds__(kThreads)
    linear_int8_tiles_kernel(Rows<const std::int8_t> input, Rows<const std::int8_t> weight, std::int64_t num_tokens,
                             std::int64_t out_features, std::int64_t in_features, Int8Epilogue<Out> epilogue) {
  __shared__ int tokens[kInputs][kTile + 4];
  __shared__ int outputs[kInputs][kTile + 4];
  wait_for_earlier_kernels();
  const std::int64_t first_token = static_cast<std::int64_t>(blockIdx.x) * kTile;
  const std::int64_t first_output = static_cast<std::int64_t>(blockIdx.y) * kTile;
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / (kTile / kSums) * kSums, column = thread % (kTile / kSums) * kSums;
  int sums[kSums][kSums] = {};
  for (std::int64_t k = 0; k < in_features; k += kInputs) {
    for (int i = thread; i < kTile * kInputs; i += kThreads) {
      const int at = i / kInputs, input_at = i % kInputs;
      const bool is_input = k + input_at < in_features;
      const std::int64_t token = first_token + at, output = first_output + at;
      tokens[input_at][at] = is_input && token < num_tokens ? input.row(token)[k + input_at] : 0;
      outputs[input_at][at] = is_input && output < out_features ? weight.row(output)[k + input_at] : 0;
    }
    sync_block();
#pragma unroll 4
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
      if (token < num_tokens && output < out_features) epilogue.store(token, output, sums[r][c]);
    }
  }
}

}  // namespace

void linear_int8_tiles(const Int8Product& product, cudaStream_t stream) {
  with_type(product.out_dtype, [&](auto zero) {
    using Out = decltype(zero);
    launch("linear_int8_tiles", stream,
           early(dim3(blocks_for(product.num_tokens, kTile), blocks_for(product.out_features, kTile)), kThreads),
           linear_int8_tiles_kernel<Out>, Rows<const std::int8_t>{product.input.codes, product.input.codes_stride},
           Rows<const std::int8_t>{product.weight.codes, product.in_features}, product.num_tokens, product.out_features,
           product.in_features, epilogue_of<Out>(product));
  });
}

}  // namespace treble::cuda
