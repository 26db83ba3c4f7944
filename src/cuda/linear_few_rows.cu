#include "cuda/cuda_ops.h"
#include "cuda/launch.cuh"
#include "cuda/rows.cuh"

// Products of few fp32 rows in one launch, as exact as in fp32. A block computes 16 outputs of up to 16 rows; its 16
// warps share the input features, 32 at a time in turn. Weights come from memory once for a block of rows; inputs come
// from the L2 cache and are taken apart in registers into three bf16 terms (linear.cu), whose products mma.sync adds up
// in fp32. The warps' sums meet in shared memory and are added in a fixed order: the digits of a row do not depend on
// how many there are. Limit: the L2 cache, which gives every block the whole input.
//
// The 16 terms of an mma may come in any order if both operands agree on it. So a lane reads eight neighbouring
// features of a row, 16 bytes of bf16: the first four are its part of one mma, the others of the next.

namespace treble::cuda {
namespace {

constexpr int kWarps = 16;
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kOutputs = 16;   // of a block
constexpr int kTileRows = 8;   // rows of an mma
constexpr int kFeatures = 32;  // that a warp reads at once
constexpr int kTerms = 3;
constexpr int kStride = kOutputs + 4;  // of sums in shared memory: the lanes of a warp write to different banks

template <typename Out>
struct FewRows {
  Rows<const float> input;
  Rows<const bfloat16> weight;
  const bfloat16* bias;
  std::int64_t num_rows, out_features, in_features;
  bool is_aligned;  // rows of input and weight start at multiples of 16 bytes
  Rows<Out> out;
  Epilogue epilogue;
};

/// Elements [i, i + 8) of a row of `count`, zeros past its end.
template <bool kIsWhole>
__device__ __forceinline__ uint4 load_weights(const bfloat16* row, std::int64_t i, std::int64_t count,
                                              bool is_aligned) {
  if (kIsWhole) return *reinterpret_cast<const uint4*>(row + i);
  float values[kGroup];
  load_group(row, i, count, is_aligned, values);
  return make_uint4(pack_bf16(values[0], values[1]), pack_bf16(values[2], values[3]), pack_bf16(values[4], values[5]),
                    pack_bf16(values[6], values[7]));
}

template <bool kIsWhole>
__device__ __forceinline__ void load_input(const float* row, std::int64_t i, std::int64_t count, bool is_aligned,
                                           float (&values)[kGroup]) {
  // What is known when it is compiled leaves no branch between the loads, so that all are on their way at once.
  load_group(row, i, kIsWhole ? i + kGroup : count, kIsWhole || is_aligned, values);
}

/// sums [16 outputs, 8 rows] += the products of both operands' 32 features.
__device__ __forceinline__ void add_product(const uint4 (&weights)[2], float (&input)[kGroup], float (&sums)[4]) {
  const std::uint32_t first[4] = {weights[0].x, weights[1].x, weights[0].y, weights[1].y};
  const std::uint32_t second[4] = {weights[0].z, weights[1].z, weights[0].w, weights[1].w};
#pragma unroll
  for (int term = 0; term < kTerms; ++term) {
    std::uint32_t packed[kGroup / 2];
#pragma unroll
    for (int j = 0; j < kGroup / 2; ++j) {
      packed[j] = pack_bf16(input[2 * j], input[2 * j + 1]);
      input[2 * j] -= low_bf16(packed[j]);
      input[2 * j + 1] -= high_bf16(packed[j]);
    }
    multiply_bf16(sums, first, packed[0], packed[1]);
    multiply_bf16(sums, second, packed[2], packed[3]);
  }
}

/// @tparam kTiles    of 8 rows in a block
/// @tparam kIsWhole  all loads are aligned, and the input features multiples of 32
template <int kTiles, bool kIsWhole, typename Out>
__global__ void __launch_bounds__(kThreads) linear_few_rows_kernel(FewRows<Out> args) {
  wait_for_earlier_kernels();
  __shared__ float partial[kWarps][kTileRows * kTiles][kStride];
  const std::int64_t first_output = static_cast<std::int64_t>(blockIdx.x) * kOutputs;
  const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.y) * (kTileRows * kTiles);
  const int group = lane_id() / 4, quarter = lane_id() % 4;
  // Past the end the last row is read again; those sums are not stored.
  const bfloat16* weight_rows[2];
#pragma unroll
  for (int half = 0; half < 2; ++half)
    weight_rows[half] = args.weight.row(min(first_output + group + 8 * half, args.out_features - 1));
  const float* input_rows[kTiles];
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile)
    input_rows[tile] = args.input.row(min(first_row + kTileRows * tile + group, args.num_rows - 1));

  float sums[kTiles][4] = {};
#pragma unroll 2
  for (std::int64_t begin = warp_id() * kFeatures; begin < args.in_features; begin += kWarps * kFeatures) {
    const std::int64_t i = begin + quarter * kGroup;
    uint4 weights[2];
#pragma unroll
    for (int half = 0; half < 2; ++half)
      weights[half] = load_weights<kIsWhole>(weight_rows[half], i, args.in_features, args.is_aligned);
    float inputs[kTiles][kGroup];
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile)
      load_input<kIsWhole>(input_rows[tile], i, args.in_features, args.is_aligned, inputs[tile]);
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) add_product(weights, inputs[tile], sums[tile]);
  }

#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int c = 0; c < 4; ++c)
      partial[warp_id()][kTileRows * tile + 2 * quarter + c % 2][group + c / 2 * 8] = sums[tile][c];
  }
  sync_block();
  for (int i = static_cast<int>(threadIdx.x); i < kTileRows * kTiles * kOutputs; i += kThreads) {
    const std::int64_t row = first_row + i / kOutputs, output = first_output + i % kOutputs;
    if (row >= args.num_rows || output >= args.out_features) continue;
    float x = 0;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) x += partial[warp][i / kOutputs][i % kOutputs];
    if (args.bias) x += widen(args.bias[output]);
    Out& out = args.out.row(row)[output];
    if (args.epilogue == Epilogue::kAdd) x += widen(out);
    if (args.epilogue == Epilogue::kGelu) x = gelu_erf(round_to<Out>(x));
    out = narrow<Out>(x);
  }
}

template <typename Out>
using Kernel = void (*)(FewRows<Out>);

template <typename Out>
Kernel<Out> kernel_for(int num_tiles, bool is_whole) {
  if (!is_whole) return linear_few_rows_kernel<2, false, Out>;
  return num_tiles == 1 ? linear_few_rows_kernel<1, true, Out> : linear_few_rows_kernel<2, true, Out>;
}

}  // namespace

void CudaOps::multiply_few_rows(const TensorView& input, const LinearRun& run) {
  const std::int64_t num_rows = input.size(0), in_features = input.size(1);
  const TensorView &weight = run.first->weight, &bias = run.first->bias;
  const bool is_aligned = rows_are_aligned(input, weight);
  const bool is_whole = is_aligned && in_features % kFeatures == 0;
  // Blocks of 16 rows: of 32, half as many blocks would leave multiprocessors idle at the model's 1,024 outputs.
  const int num_tiles = num_rows > kTileRows || !is_whole ? 2 : 1;
  with_type(run.out_dtype, [&](auto zero) {
    using Out = decltype(zero);
    const FewRows<Out> few{const_rows<float>(input),
                           const_rows<bfloat16>(weight),
                           bias ? bias.as<bfloat16>() : nullptr,
                           num_rows,
                           run.out_features,
                           in_features,
                           is_aligned,
                           Rows<Out>{static_cast<Out*>(run.out), run.out_stride},
                           run.epilogue};
    launch("linear_few_rows", stream_.get(),
           early(dim3(blocks_for(run.out_features, kOutputs), blocks_for(num_rows, kTileRows * num_tiles)), kThreads),
           kernel_for<Out>(num_tiles, is_whole), few);
  });
}

}  // namespace treble::cuda
