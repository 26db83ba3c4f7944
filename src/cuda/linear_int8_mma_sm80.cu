#include "cuda/int8_epilogue.cuh"
#include "cuda/launch.cuh"
#include "cuda/linear_int8.h"

// Products of 8-bit codes on tensor cores. A block of eight warps computes 128 tokens x 128 outputs, a warp 64 x 32.
// Stages of 64 inputs, 16 KiB, come by asynchronous copies into four places of shared memory, so that three are on
// their way while one is multiplied. A row of a stage is four pieces of 16 bytes, exchanged from one pair of rows to
// the next so that eight rows' pieces lie in different banks. Limit: mma.sync, and the few warps of a block where
// tokens are few.

namespace treble::cuda {
namespace {

constexpr int kTokens = 128, kOutputs = 128;
constexpr int kInputs = 64;  // codes of a stage
constexpr int kStages = 4;
constexpr int kPiece = 16;  // bytes
constexpr int kPieces = kInputs / kPiece;
constexpr int kWarpTokens = 64, kWarpOutputs = 32;
constexpr int kWarpsAlongOutputs = kOutputs / kWarpOutputs;
constexpr int kThreads = kTokens / kWarpTokens * kWarpsAlongOutputs * kWarpSize;
constexpr int kStageBytes = (kTokens + kOutputs) * kInputs;

struct Operands {
  Rows<const std::int8_t> input, weight;
  std::int64_t num_tokens, out_features, in_features;
};

/// Where piece `piece` of a row of a stage lies, in bytes.
__device__ __forceinline__ int piece_at(int row, int piece) {
  return row * kInputs + (piece ^ row / 2 % kPieces) * kPiece;
}

/// Starts copying a stage, zeros where there are no more rows or inputs.
__device__ __forceinline__ void copy_stage(const Operands& args, std::int64_t first_token, std::int64_t first_output,
                                           std::int64_t first_input, std::int8_t* stage) {
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x); i < (kTokens + kOutputs) * kPieces; i += kThreads) {
    const int row = i / kPieces, piece = i % kPieces;
    const bool is_token = row < kTokens;
    const std::int64_t at = is_token ? first_token + row : first_output + row - kTokens;
    const std::int64_t input = first_input + piece * kPiece;
    const bool is_there = at < (is_token ? args.num_tokens : args.out_features) && input < args.in_features;
    const Rows<const std::int8_t>& rows = is_token ? args.input : args.weight;
    copy_async(stage + piece_at(row, piece), rows.row(is_there ? at : 0) + (is_there ? input : 0), is_there);
  }
}

template <typename Out>
__global__ void __launch_bounds__(kThreads, 2) linear_int8_mma_kernel(Operands args, Int8Epilogue<Out> epilogue) {
  constexpr int kTokenTiles = kWarpTokens / 16, kOutputTiles = kWarpOutputs / 8;
  auto* stages = reinterpret_cast<std::int8_t*>(dynamic_shared());
  const std::int64_t first_token = static_cast<std::int64_t>(blockIdx.x) * kTokens;
  const std::int64_t first_output = static_cast<std::int64_t>(blockIdx.y) * kOutputs;
  const int lane = lane_id();
  const int own_token = warp_id() / kWarpsAlongOutputs * kWarpTokens;
  const int own_output = warp_id() % kWarpsAlongOutputs * kWarpOutputs;
  const int num_stages = static_cast<int>((args.in_features + kInputs - 1) / kInputs);
  const auto copy = [&](int stage) {
    if (stage < num_stages)
      copy_stage(args, first_token, first_output, static_cast<std::int64_t>(stage) * kInputs,
                 stages + stage % kStages * kStageBytes);
    commit_copies();
  };
  wait_for_earlier_kernels();
  for (int stage = 0; stage < kStages - 1; ++stage) copy(stage);

  int sums[kTokenTiles][kOutputTiles][4] = {};
  for (int stage = 0; stage < num_stages; ++stage) {
    wait_for_copies<kStages - 2>();
    sync_block();  // this stage is there for all, and the one before it is read
    copy(stage + kStages - 1);
    const std::int8_t* tokens = stages + stage % kStages * kStageBytes;
    const std::int8_t* outputs = tokens + kTokens * kInputs;
#pragma unroll
    for (int piece = 0; piece < kPieces; piece += 2) {
      std::uint32_t b[kOutputTiles / 2][4];
#pragma unroll
      for (int n = 0; n < kOutputTiles / 2; ++n)
        load_matrices(b[n], outputs + piece_at(own_output + n * 16 + lane % 8 + lane / 16 * 8, piece + lane / 8 % 2));
#pragma unroll
      for (int m = 0; m < kTokenTiles; ++m) {
        std::uint32_t a[4];
        load_matrices(a, tokens + piece_at(own_token + m * 16 + lane % 16, piece + lane / 16));
#pragma unroll
        for (int n = 0; n < kOutputTiles / 2; ++n) {
          multiply_int8(sums[m][2 * n], a, b[n][0], b[n][1]);
          multiply_int8(sums[m][2 * n + 1], a, b[n][2], b[n][3]);
        }
      }
    }
  }

#pragma unroll
  for (int m = 0; m < kTokenTiles; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t token = first_token + own_token + m * 16 + lane / 4 + 8 * half;
      if (token >= args.num_tokens) continue;
#pragma unroll
      for (int n = 0; n < kOutputTiles; ++n) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          const std::int64_t output = first_output + own_output + n * 8 + lane % 4 * 2 + c;
          if (output < args.out_features) epilogue.store(token, output, sums[m][n][2 * half + c]);
        }
      }
    }
  }
}

}  // namespace

void linear_int8_mma_sm80(const Int8Product& product, cudaStream_t stream) {
  const Operands operands{{product.input.codes, product.input.codes_stride},
                          {product.weight.codes, product.in_features},
                          product.num_tokens,
                          product.out_features,
                          product.in_features};
  with_type(product.out_dtype, [&](auto zero) {
    using Out = decltype(zero);
    launch("linear_int8_mma_sm80", stream,
           {.grid = dim3(blocks_for(product.num_tokens, kTokens), blocks_for(product.out_features, kOutputs)),
            .num_threads = kThreads,
            .shared_bytes = kStages * kStageBytes,
            .starts_early = true},
           linear_int8_mma_kernel<Out>, operands, epilogue_of<Out>(product));
  });
}

}  // namespace treble::cuda
