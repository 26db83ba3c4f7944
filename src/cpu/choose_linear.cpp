#include "cpu/choose_linear.h"

namespace treble::cpu {

LinearKernel choose_linear(const LinearShape& shape, bool has_bf16_products) {
  // oneDNN reads weights as they lie, and codes are no matrix.
  if (shape.format != WeightFormat::kDense) return LinearKernel::kTiles;
  if (!has_bf16_products || shape.input != DType::kBF16) return LinearKernel::kTiles;
  // Below, the tiles wait for memory already, and oneDNN would first copy the weights into another order.
  constexpr std::int64_t kFewTokens = 16;
  return shape.num_tokens > kFewTokens ? LinearKernel::kOnednnBf16 : LinearKernel::kTiles;
}

}  // namespace treble::cpu
