#pragma once

#include <cstdint>
#include <string_view>

#include "ops/ops.h"
#include "quant/linear_weight.h"

// Products of 8-bit codes on processors that multiply them four at a time into 32-bit sums (AVX512_VNNI) or by whole
// tiles (AMX). Sums are exact, so they are those of int8_tiles.h, bit for bit. A block is 32 weight rows, read where
// they lie, by 32 tokens, whose codes are packed as both instructions want their right operand: four features of one
// token after another. Weights are the left operand, so that they need no order of their own; blocks of sums come out
// with a row for each output and are transposed on their way into the product.

namespace treble::cpu {

enum class Int8Blocks {
  kNone,      ///< the processor has neither
  kPortable,  ///< plain C++, slow: what is around the instructions can be tested on any processor
  kVnni,
  kAmx,
};

std::string_view to_string(Int8Blocks blocks);

/// Whether this processor has what they need, and the system lets us use it.
bool is_supported(Int8Blocks blocks);

/// The fastest that this processor has.
Int8Blocks best_int8_blocks();

inline constexpr std::int64_t kInt8BlockTokens = 32, kInt8BlockOutputs = 32;

/// Weights that blocks take: rows of whole tiles' depth, and as many of them as a block has.
constexpr bool fits_int8_blocks(std::int64_t out_features, std::int64_t in_features) {
  return in_features % 64 == 0 && out_features >= kInt8BlockOutputs;
}

/// Bytes that the codes of `num_tokens` take: whole blocks of tokens.
constexpr std::int64_t packed_codes_size(std::int64_t num_tokens, std::int64_t in_features) {
  return (num_tokens + kInt8BlockTokens - 1) / kInt8BlockTokens * kInt8BlockTokens * in_features;
}

/// Packs codes [T, in_features] i8 of tokens [begin, end) into their place in `packed`, where token 0 comes first.
/// `begin` is a multiple of kInt8BlockTokens; rows that the last block lacks become zeros.
void pack_codes(Int8Blocks blocks, const TensorView& codes, std::int64_t begin, std::int64_t end, std::int8_t* packed);

/// sums[t, o] = code sum of token t and weight row `first + o`, for `count` rows.
/// @param packed  what pack_codes() wrote for the first of the tokens
/// @param weight  kInt8, fits_int8_blocks(); all rows
/// @param sums    [num_tokens, count] i32, rows strided
void multiply_codes(Int8Blocks blocks, const std::int8_t* packed, const LinearWeight& weight, std::int64_t first,
                    const TensorView& sums);

}  // namespace treble::cpu
