#include "cpu/choose_linear.h"

#include "cpu/int8_blocks.h"

namespace treble::cpu {

LinearKernel choose_linear(const LinearShape& shape, NarrowProducts products) {
  // Below, the tiles wait for memory already. oneDNN would first copy the weights into another order, and blocks of
  // codes would be half empty.
  constexpr std::int64_t kFewTokens = 16;
  if (shape.num_tokens <= kFewTokens) return LinearKernel::kTiles;
  switch (shape.format) {
    case WeightFormat::kDense:
      return products.has_bf16 && shape.input == DType::kBF16 ? LinearKernel::kOnednnBf16 : LinearKernel::kTiles;
    case WeightFormat::kInt8:
      return products.has_int8 && fits_int8_blocks(shape.out_features, shape.in_features) ? LinearKernel::kInt8Blocks
                                                                                          : LinearKernel::kTiles;
    case WeightFormat::kNf4:
      return LinearKernel::kTiles;  // which decode them
  }
  return LinearKernel::kTiles;
}

}  // namespace treble::cpu
