#include "cpu/choose_linear.h"

#include <doctest/doctest.h>

using namespace treble;
using namespace treble::cpu;

TEST_CASE("choose_linear: oneDNN multiplies bf16 inputs where the processor has bf16 products") {
  CHECK(choose_linear({DType::kBF16, 300, WeightFormat::kDense}, true) == LinearKernel::kOnednnBf16);
  CHECK(choose_linear({DType::kBF16, 300, WeightFormat::kDense}, false) == LinearKernel::kTiles);
}

TEST_CASE("choose_linear: fp32 inputs keep fp32 products") {
  CHECK(choose_linear({DType::kF32, 300, WeightFormat::kDense}, true) == LinearKernel::kTiles);
  CHECK(choose_linear({DType::kF32, 1, WeightFormat::kDense}, false) == LinearKernel::kTiles);
}

TEST_CASE("choose_linear: few tokens, and none, go to the tiles") {
  CHECK(choose_linear({DType::kBF16, 0, WeightFormat::kDense}, true) == LinearKernel::kTiles);
  CHECK(choose_linear({DType::kBF16, 1, WeightFormat::kDense}, true) == LinearKernel::kTiles);
  CHECK(choose_linear({DType::kBF16, 16, WeightFormat::kDense}, true) == LinearKernel::kTiles);
  CHECK(choose_linear({DType::kBF16, 17, WeightFormat::kDense}, true) == LinearKernel::kOnednnBf16);
}

TEST_CASE("choose_linear: codes go to the tiles, which decode them") {
  CHECK(choose_linear({DType::kBF16, 300, WeightFormat::kNf4}, true) == LinearKernel::kTiles);
}
