#pragma once

#include <cstdint>

#include "quant/linear_weight.h"
#include "tensor/tensor_view.h"

// The product of fp32 tokens with bf16 or NF4 weight rows, as dot products: a tile of a few tokens by a few weight rows
// is held in registers and runs along the features. Only tokens are copied as a whole, into an order that the tiles
// read front to back. Weights are read where they lie, once for a pass of tokens: widened in registers while memory is
// what limits, that is for few tokens, and by some rows at a time into the second-level cache when there are more.
// Codes always go that way, as the values that their format gives them: no more than kWidenedSize are there at once.

namespace treble::cpu {

/// Tokens and outputs of one call of multiply_pass(). Multiples of every instruction set's tile.
inline constexpr std::int64_t kPassTokens = 192;
inline constexpr std::int64_t kPassOutputs = 48;
inline constexpr std::int64_t kPackTokens = 24;

/// Floats that multiply_pass() widens weights into.
inline constexpr std::int64_t kSweepFeatures = 1024;
inline constexpr std::int64_t kWidenedSize = kPassOutputs * kSweepFeatures;

/// Floats that `num_tokens` packed tokens take.
std::int64_t packed_size(std::int64_t num_tokens, std::int64_t in_features);

/// Packs tokens [begin, end) of input [T, in_features] f32 or bf16 into their place in `packed`, where token 0 comes
/// first. `begin` is a multiple of kPackTokens.
void pack_tokens(const TensorView& input, std::int64_t begin, std::int64_t end, float* packed);

/// product[t, o] = token t . weight row o + bias[o], for the rows that there are.
/// @param packed   what pack_tokens() wrote for the first of the tokens
/// @param weight   at most kPassOutputs rows
/// @param widened  scratch of kWidenedSize elements
/// @param product  [num_tokens, kPassOutputs] f32, contiguous, at most kPassTokens rows; columns past num_outputs are
///                 scratch
void multiply_pass(const float* packed, const LinearWeight& weight, float* widened, const TensorView& product);

/// out = product, rounded to out's dtype.
void store_product(const TensorView& product, const TensorView& out);

/// out = silu(gate) * up, rounded to out's dtype wherever the reference rounds: both factors, the silu and the product.
/// @param gate, up  like out, or f32
void store_swiglu(const TensorView& gate, const TensorView& up, const TensorView& out);

}  // namespace treble::cpu
