#include <doctest/doctest.h>

#include "cuda/choose_attention.h"
#include "cuda/choose_delta_rule.h"
#include "cuda/choose_linear.h"

using namespace treble;
using namespace treble::cuda;

TEST_CASE("cuda: products whose rows are whole 16-byte blocks go to cuBLASLt, others to tiles of any size") {
  CHECK(choose_linear({298, 17408, 5120, true}) == LinearKernel::kCublasLt);
  CHECK(choose_linear({1, 48, 5120, true}) == LinearKernel::kCublasLt);
  CHECK(choose_linear({298, 17408, 5120, false}) == LinearKernel::kTiles);
  CHECK(choose_linear({32, 1, 1024, true}) == LinearKernel::kTiles);
  CHECK(choose_linear({97, 48, 130, true}) == LinearKernel::kTiles);
}

TEST_CASE("cuda: attention in bf16 runs on tensor cores for every head size of the model") {
  for (const std::int64_t head_dim : {64, 72, 256})
    CHECK(choose_attention({DType::kBF16, 298, head_dim, true}, KernelSet::kBest) == AttentionKernel::kMmaSm80);
  CHECK(choose_attention({DType::kBF16, 298, 256, true}, KernelSet::kSm80) == AttentionKernel::kMmaSm80);
  CHECK(choose_attention({DType::kBF16, 298, 256, true}, KernelSet::kPlain) == AttentionKernel::kRows);
  CHECK(choose_attention({DType::kF32, 298, 256, true}, KernelSet::kBest) == AttentionKernel::kRows);
  CHECK(choose_attention({DType::kBF16, 298, 256, false}, KernelSet::kBest) == AttentionKernel::kRows);
  CHECK(choose_attention({DType::kBF16, 298, 13, true}, KernelSet::kBest) == AttentionKernel::kRows);
  CHECK(choose_attention({DType::kBF16, 298, 1024, true}, KernelSet::kBest) == AttentionKernel::kRows);
}

TEST_CASE("cuda: a head is padded to the next size that the tensor core kernel is built for") {
  CHECK(padded_head_dim(24) == 64);
  CHECK(padded_head_dim(64) == 64);
  CHECK(padded_head_dim(72) == 80);
  CHECK(padded_head_dim(256) == 256);
  CHECK(padded_head_dim(264) == 0);
}

TEST_CASE("cuda: the delta rule runs in chunks for the model's head sizes, step by step for others") {
  CHECK(choose_delta_rule({DType::kBF16, 128, 128, true}, KernelSet::kBest) == DeltaRuleKernel::kMmaSm80);
  CHECK(choose_delta_rule({DType::kBF16, 128, 64, true}, KernelSet::kSm80) == DeltaRuleKernel::kMmaSm80);
  CHECK(choose_delta_rule({DType::kBF16, 128, 128, true}, KernelSet::kPlain) == DeltaRuleKernel::kSteps);
  CHECK(choose_delta_rule({DType::kF32, 128, 128, true}, KernelSet::kBest) == DeltaRuleKernel::kSteps);
  CHECK(choose_delta_rule({DType::kBF16, 32, 24, true}, KernelSet::kBest) == DeltaRuleKernel::kSteps);
  CHECK(choose_delta_rule({DType::kBF16, 128, 128, false}, KernelSet::kBest) == DeltaRuleKernel::kSteps);
}
