#include <doctest/doctest.h>

#include "cuda/choose_attention.h"
#include "cuda/choose_delta_rule.h"
#include "cuda/choose_linear.h"
#include "cuda/choose_quantizer.h"
#include "cuda/choose_wgmma_int8_tile.h"
#include "cuda/choose_wgmma_tile.h"

using namespace treble;
using namespace treble::cuda;

TEST_CASE("cuda: products whose rows are whole 16-byte blocks go to cuBLASLt, others to tiles of any size") {
  CHECK(choose_linear({DType::kBF16, 298, 17408, 5120, true}) == LinearKernel::kCublasLt);
  CHECK(choose_linear({DType::kBF16, 1, 48, 5120, true}) == LinearKernel::kCublasLt);
  CHECK(choose_linear({DType::kF32, 298, 1024, 5120, true}) == LinearKernel::kCublasLt);
  CHECK(choose_linear({DType::kBF16, 298, 17408, 5120, false}) == LinearKernel::kTiles);
  CHECK(choose_linear({DType::kBF16, 2270, 17408, 0, true}) == LinearKernel::kTiles);
  CHECK(choose_linear({DType::kBF16, 32, 1, 1024, true}) == LinearKernel::kTiles);
  CHECK(choose_linear({DType::kF32, 297, 48, 130, true}) == LinearKernel::kTiles);
}

TEST_CASE("cuda: products of few fp32 rows, as the decision head has them, are one launch") {
  CHECK(choose_linear({DType::kF32, 32, 1024, 5120, true}) == LinearKernel::kFewRows);
  CHECK(choose_linear({DType::kF32, 1, 1, 1024, true}) == LinearKernel::kFewRows);
  CHECK(choose_linear({DType::kF32, 97, 48, 130, false}) == LinearKernel::kFewRows);
  CHECK(choose_linear({DType::kF32, 128, 1024, 5120, true}) == LinearKernel::kCublasLt);
  CHECK(choose_linear({DType::kBF16, 32, 1024, 5120, true}) == LinearKernel::kCublasLt);
}

TEST_CASE("cuda: products of 8-bit codes run on tensor cores where rows of codes are whole 16-byte blocks") {
  const Int8LinearShape shape{DType::kBF16, 17408, 5120, true, true};
  CHECK(choose_int8_linear(shape, 90, KernelSet::kBest) == Int8LinearKernel::kWgmmaSm90);
  CHECK(choose_int8_linear(shape, 90, KernelSet::kSm80) == Int8LinearKernel::kMmaSm80);
  CHECK(choose_int8_linear(shape, 90, KernelSet::kPlain) == Int8LinearKernel::kTiles);
  for (const int other : {80, 86, 89, 100, 120})
    CHECK(choose_int8_linear(shape, other, KernelSet::kBest) == Int8LinearKernel::kMmaSm80);
  const auto choose = [](const Int8LinearShape& odd) { return choose_int8_linear(odd, 90, KernelSet::kBest); };
  CHECK(choose({DType::kF32, 17408, 5120, true, true}) == Int8LinearKernel::kMmaSm80);
  CHECK(choose({DType::kBF16, 50, 5120, true, true}) == Int8LinearKernel::kMmaSm80);
  CHECK(choose({DType::kBF16, 17408, 5120, true, false}) == Int8LinearKernel::kMmaSm80);
  CHECK(choose({DType::kBF16, 17408, 5128, true, true}) == Int8LinearKernel::kTiles);
  CHECK(choose({DType::kBF16, 17408, 5120, false, true}) == Int8LinearKernel::kTiles);
  CHECK(choose({DType::kBF16, 17408, 0, true, true}) == Int8LinearKernel::kTiles);
}

TEST_CASE("cuda: rows of groups of 256 are quantised in registers, others in parts") {
  for (const std::int64_t width : {256, 5120, 6144, 17408, 40960})
    CHECK(choose_quantizer({width, 256, true}) == Quantizer::kGroup256);
  CHECK(choose_quantizer({41216, 256, true}) == Quantizer::kAnyGroup);
  CHECK(choose_quantizer({5120, 1024, true}) == Quantizer::kAnyGroup);
  CHECK(choose_quantizer({5120, 1, true}) == Quantizer::kAnyGroup);
  CHECK(choose_quantizer({5120, 256, false}) == Quantizer::kAnyGroup);
  CHECK(groups_of_half_warp(17408 / 256) == 2);
  for (const std::int64_t num_groups : {1, 20, 40, 41, 68, 69, 160}) {
    const std::int64_t of_half = groups_of_half_warp(num_groups), halves = (num_groups + of_half - 1) / of_half;
    CHECK(16 * halves <= (of_half == 2 ? kTwoGroupThreads : kQuantizerThreads));
  }
}

TEST_CASE("cuda: attention in bf16 runs on tensor cores for every head size of the model") {
  const auto choose = [](DType dtype, std::int64_t head_dim, bool is_aligned, KernelSet kernels) {
    return choose_attention({dtype, 298, head_dim, is_aligned, true}, 80, kernels);
  };
  for (const std::int64_t head_dim : {64, 72, 256})
    CHECK(choose(DType::kBF16, head_dim, true, KernelSet::kBest) == AttentionKernel::kMmaSm80);
  CHECK(choose(DType::kBF16, 256, true, KernelSet::kSm80) == AttentionKernel::kMmaSm80);
  CHECK(choose(DType::kBF16, 256, true, KernelSet::kPlain) == AttentionKernel::kRows);
  CHECK(choose(DType::kF32, 256, true, KernelSet::kBest) == AttentionKernel::kRows);
  CHECK(choose(DType::kBF16, 256, false, KernelSet::kBest) == AttentionKernel::kRows);
  CHECK(choose(DType::kBF16, 13, true, KernelSet::kBest) == AttentionKernel::kRows);
  CHECK(choose(DType::kBF16, 1024, true, KernelSet::kBest) == AttentionKernel::kRows);
}

TEST_CASE("cuda: attention with heads of 256 runs on wgmma where the device has it and the kernel set allows it") {
  const AttentionShape shape{DType::kBF16, 298, 256, true, true};
  CHECK(choose_attention(shape, 90, KernelSet::kBest) == AttentionKernel::kWgmmaSm90);
  CHECK(choose_attention(shape, 80, KernelSet::kBest) == AttentionKernel::kMmaSm80);
  CHECK(choose_attention(shape, 100, KernelSet::kBest) == AttentionKernel::kMmaSm80);
  CHECK(choose_attention(shape, 90, KernelSet::kSm80) == AttentionKernel::kMmaSm80);
  CHECK(choose_attention(shape, 90, KernelSet::kPlain) == AttentionKernel::kRows);
  CHECK(choose_attention({DType::kBF16, 298, 72, true, true}, 90, KernelSet::kBest) == AttentionKernel::kMmaSm80);
  CHECK(choose_attention({DType::kBF16, 298, 256, true, false}, 90, KernelSet::kBest) == AttentionKernel::kMmaSm80);
  CHECK(choose_attention({DType::kBF16, 298, 256, false, true}, 90, KernelSet::kBest) == AttentionKernel::kRows);
  CHECK(choose_attention({DType::kF32, 298, 256, true, true}, 90, KernelSet::kBest) == AttentionKernel::kRows);
}

TEST_CASE("cuda: attention in fp32 of the decision head runs on tensor cores, other fp32 attention row by row") {
  CHECK(choose_attention({DType::kF32, 32, 64, true}, 80, KernelSet::kBest) == AttentionKernel::kFewQueries);
  CHECK(choose_attention({DType::kF32, 1, 13, false}, 90, KernelSet::kSm80) == AttentionKernel::kFewQueries);
  CHECK(choose_attention({DType::kF32, 32, 64, true}, 80, KernelSet::kPlain) == AttentionKernel::kRows);
  CHECK(choose_attention({DType::kF32, 8, 1024, true}, 80, KernelSet::kBest) == AttentionKernel::kRows);
  const AttentionShape causal{DType::kF32, 32, 64, true, true, true, false},
      gated{DType::kF32, 32, 64, true, true, false, true};
  CHECK(choose_attention(causal, 80, KernelSet::kBest) == AttentionKernel::kRows);
  CHECK(choose_attention(gated, 80, KernelSet::kBest) == AttentionKernel::kRows);
}

TEST_CASE("cuda: a head is padded to the next size that the tensor core kernel is built for") {
  CHECK(padded_head_dim(24) == 64);
  CHECK(padded_head_dim(64) == 64);
  CHECK(padded_head_dim(72) == 80);
  CHECK(padded_head_dim(256) == 256);
  CHECK(padded_head_dim(264) == 0);
}

TEST_CASE("cuda: the delta rule runs in chunks for the model's head sizes, step by step for others") {
  for (const int compute_capability : {80, 90, 120}) {
    const auto choose = [&](const DeltaRuleShape& shape, KernelSet kernels) {
      return choose_delta_rule(shape, compute_capability, kernels);
    };
    CHECK(choose({DType::kBF16, 128, 128, true}, KernelSet::kSm80) == DeltaRuleKernel::kMmaSm80);
    CHECK(choose({DType::kBF16, 128, 64, true}, KernelSet::kSm80) == DeltaRuleKernel::kMmaSm80);
    CHECK(choose({DType::kBF16, 128, 128, true}, KernelSet::kPlain) == DeltaRuleKernel::kSteps);
    CHECK(choose({DType::kF32, 128, 128, true}, KernelSet::kBest) == DeltaRuleKernel::kSteps);
    CHECK(choose({DType::kBF16, 32, 24, true}, KernelSet::kBest) == DeltaRuleKernel::kSteps);
    CHECK(choose({DType::kBF16, 128, 128, false}, KernelSet::kBest) == DeltaRuleKernel::kSteps);
  }
}

TEST_CASE("cuda: the delta rule's chunks run on wgmma on Hopper, and nowhere else") {
  const DeltaRuleShape shape{DType::kBF16, 128, 128, true};
  CHECK(choose_delta_rule(shape, 90, KernelSet::kBest) == DeltaRuleKernel::kWgmmaSm90);
  for (const int other : {80, 86, 89, 100, 120})
    CHECK(choose_delta_rule(shape, other, KernelSet::kBest) == DeltaRuleKernel::kMmaSm80);
}

TEST_CASE("cuda: a head of the delta rule is split over blocks while there are multiprocessors for them") {
  constexpr int kSms = 132;  // of an H200
  CHECK(choose_delta_rule_warpgroups(48, 128, kSms) == 1);
  CHECK(choose_delta_rule_warpgroups(66, 128, kSms) == 1);
  CHECK(choose_delta_rule_warpgroups(67, 128, kSms) == 2);
  CHECK(choose_delta_rule_warpgroups(16 * 48, 128, kSms) == 2);
  for (const std::int64_t value_head_dim : {64, 192})
    CHECK(choose_delta_rule_warpgroups(768, value_head_dim, kSms) == 1);
}

TEST_CASE("cuda: SwiGLU is one wgmma kernel on Hopper, for bf16 matrices that a tensor map reads") {
  const SwigluShape shape{DType::kBF16, false, 17408, 5120, true, true};
  CHECK(choose_swiglu(shape, 90, KernelSet::kBest) == SwigluKernel::kWgmmaSm90);
  for (const int other : {80, 86, 89, 100, 120})
    CHECK(choose_swiglu(shape, other, KernelSet::kBest) == SwigluKernel::kSeparate);
  for (const KernelSet kernels : {KernelSet::kSm80, KernelSet::kPlain})
    CHECK(choose_swiglu(shape, 90, kernels) == SwigluKernel::kSeparate);
  const auto is_separate = [](const SwigluShape& other) {
    return choose_swiglu(other, 90, KernelSet::kBest) == SwigluKernel::kSeparate;
  };
  CHECK(is_separate({DType::kF32, false, 17408, 5120, true, true}));
  CHECK(is_separate({DType::kBF16, false, 17404, 5120, true, true}));
  CHECK(is_separate({DType::kBF16, false, 17408, 5124, true, true}));
  CHECK(is_separate({DType::kBF16, false, 17408, 0, true, true}));
  CHECK(is_separate({DType::kBF16, false, 17408, 5120, false, true}));
  CHECK(is_separate({DType::kBF16, false, 17408, 5120, true, false}));
  CHECK(!is_separate({DType::kBF16, false, 17408, 5128, true, true}));
  CHECK(is_separate({DType::kBF16, true, 17408, 5128, true, true}));  // 16 codes are 16 bytes
  CHECK(!is_separate({DType::kBF16, true, 17408, 5136, true, true}));
}

TEST_CASE("cuda: the tile of a wgmma product leaves few multiprocessors idle") {
  constexpr int kSms = 132;  // of an H200
  CHECK(choose_wgmma_tile(298, 2 * 17408, kSms) == WgmmaTile::k192x152);
  CHECK(choose_wgmma_tile(1502, 2 * 17408, kSms) == WgmmaTile::k256x128);
  CHECK(choose_wgmma_tile(2270, 2 * 17408, kSms) == WgmmaTile::k256x192);
  CHECK(choose_wgmma_tile(298, 2 * 12288, kSms) == WgmmaTile::k192x152);
  for (const std::int64_t num_tokens : {298, 1502, 2270, 24032}) {
    for (const std::int64_t weight_rows : {2 * 17408, 2 * 12288}) {
      const auto [rows, tokens, shares_weight] = shape_of(choose_wgmma_tile(num_tokens, weight_rows, kSms));
      const std::int64_t pairs = (weight_rows + rows - 1) / rows * ((num_tokens + 2 * tokens - 1) / (2 * tokens));
      const std::int64_t rounds = (pairs + kSms / 2 - 1) / (kSms / 2);
      const double done = static_cast<double>(rounds) * kSms * rows * tokens;
      CAPTURE(num_tokens);
      CAPTURE(weight_rows);
      CHECK(done <= 1.15 * static_cast<double>(num_tokens * weight_rows));
    }
  }
}

TEST_CASE("cuda: a weight that meets few tokens is spread over one round of multiprocessors") {
  constexpr int kSms = 132;
  CHECK(choose_wgmma_tile(64, 2 * 17408, kSms) == WgmmaTile::k320x64);
  CHECK(choose_wgmma_tile(65, 2 * 17408, kSms) == WgmmaTile::k384x128);
  CHECK(choose_wgmma_tile(64, 2 * 12288, kSms) == WgmmaTile::k192x64);
  CHECK(choose_wgmma_tile(64, 2 * 3584, kSms) == WgmmaTile::k64x64);
  CHECK(choose_wgmma_int8_tile(64, 2 * 17408, 5120, kSms) == WgmmaInt8Tile::k320x64);
  CHECK(choose_wgmma_int8_tile(128, 2 * 17408, 5120, kSms) == WgmmaInt8Tile::k384x128);
  CHECK(choose_wgmma_int8_tile(64, 16384, 5120, kSms) == WgmmaInt8Tile::k128x64);
  CHECK(choose_wgmma_int8_tile(64, 5120, 17408, kSms) == WgmmaInt8Tile::k64x64);
  for (const std::int64_t num_tokens : {1, 64, 65, 128}) {
    const auto [rows, tokens, shares_weight] = shape_of(choose_wgmma_tile(num_tokens, 2 * 17408, kSms));
    CHECK(tokens >= num_tokens);
    CHECK(!shares_weight);
    CHECK((2 * 17408 + rows - 1) / rows <= kSms);
  }
  CHECK(shape_of(choose_wgmma_tile(129, 2 * 17408, kSms)).shares_weight);
}

TEST_CASE("cuda: a wgmma tile is chosen for any number of tokens and multiprocessors") {
  for (const std::int64_t num_tokens : {1, 7, 65536})
    for (const int num_sms : {1, 2, 78, 114, 132})
      CHECK(shape_of(choose_wgmma_tile(num_tokens, 16, num_sms)).num_tokens > 0);
}

TEST_CASE("cuda: on Hopper products whose tiles fill the device run on our kernel, others on cuBLASLt") {
  constexpr int kHopper = 90, kSms = 132;
  const auto choose = [](std::int64_t num_tokens, std::int64_t out_features) {
    return choose_dense({DType::kBF16, num_tokens, out_features, false}, kHopper, kSms, KernelSet::kBest);
  };
  CHECK(choose(2270, 16480) == DenseKernel::kWgmmaSm90);
  CHECK(choose(24032, 5120) == DenseKernel::kWgmmaSm90);
  CHECK(choose(2270, 5120) == DenseKernel::kCublasLt);
  CHECK(choose(298, 16480) == DenseKernel::kCublasLt);
  CHECK(choose(1, 16) == DenseKernel::kCublasLt);
  CHECK(choose(24032, 5128) == DenseKernel::kCublasLt);
  CHECK(choose_dense({DType::kF32, 24032, 5120, false}, kHopper, kSms, KernelSet::kBest) == DenseKernel::kCublasLt);
  CHECK(choose_dense({DType::kBF16, 24032, 5120, true}, kHopper, kSms, KernelSet::kBest) == DenseKernel::kCublasLt);
  CHECK(choose_dense({DType::kBF16, 24032, 5120, false}, 80, kSms, KernelSet::kBest) == DenseKernel::kCublasLt);
  CHECK(choose_dense({DType::kBF16, 24032, 5120, false}, kHopper, kSms, KernelSet::kSm80) == DenseKernel::kCublasLt);
}
