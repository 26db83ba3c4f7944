#include "cpu/choose_linear.h"

#include <doctest/doctest.h>

using namespace treble;
using namespace treble::cpu;

namespace {

constexpr NarrowProducts kNone, kBoth = {true, true};

LinearKernel choose(DType input, std::int64_t num_tokens, WeightFormat format, NarrowProducts products,
                    std::int64_t out_features = 1024, std::int64_t in_features = 1024) {
  return choose_linear({input, num_tokens, format, out_features, in_features}, products);
}

}  // namespace

TEST_CASE("choose_linear: oneDNN multiplies bf16 inputs where the processor has bf16 products") {
  CHECK(choose(DType::kBF16, 300, WeightFormat::kDense, {.has_bf16 = true}) == LinearKernel::kOnednnBf16);
  CHECK(choose(DType::kBF16, 300, WeightFormat::kDense, {.has_int8 = true}) == LinearKernel::kTiles);
}

TEST_CASE("choose_linear: fp32 inputs of plain weights keep fp32 products") {
  CHECK(choose(DType::kF32, 300, WeightFormat::kDense, kBoth) == LinearKernel::kTiles);
  CHECK(choose(DType::kF32, 1, WeightFormat::kDense, kNone) == LinearKernel::kTiles);
}

TEST_CASE("choose_linear: 8-bit codes go by blocks where the processor multiplies them, whatever the input's type") {
  CHECK(choose(DType::kBF16, 300, WeightFormat::kInt8, {.has_int8 = true}) == LinearKernel::kInt8Blocks);
  CHECK(choose(DType::kF32, 300, WeightFormat::kInt8, {.has_int8 = true}) == LinearKernel::kInt8Blocks);
  CHECK(choose(DType::kBF16, 300, WeightFormat::kInt8, {.has_bf16 = true}) == LinearKernel::kTiles);
}

TEST_CASE("choose_linear: weights that a block does not fit into go to the tiles") {
  CHECK(choose(DType::kF32, 300, WeightFormat::kInt8, kBoth, 31, 1024) == LinearKernel::kTiles);
  CHECK(choose(DType::kF32, 300, WeightFormat::kInt8, kBoth, 33, 1024) == LinearKernel::kInt8Blocks);
  CHECK(choose(DType::kF32, 300, WeightFormat::kInt8, kBoth, 1024, 1040) == LinearKernel::kTiles);
}

TEST_CASE("choose_linear: few tokens, and none, go to the tiles") {
  for (const WeightFormat format : {WeightFormat::kDense, WeightFormat::kInt8}) {
    for (const std::int64_t num_tokens : {0, 1, 16})
      CHECK(choose(DType::kBF16, num_tokens, format, kBoth) == LinearKernel::kTiles);
    CHECK(choose(DType::kBF16, 17, format, kBoth) != LinearKernel::kTiles);
  }
}

TEST_CASE("choose_linear: 4-bit codes go to the tiles, which decode them") {
  CHECK(choose(DType::kBF16, 300, WeightFormat::kNf4, kBoth) == LinearKernel::kTiles);
}
