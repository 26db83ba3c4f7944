#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "quant/encoded_linear.h"

namespace treble {

struct Nf4Encoding {
  std::int64_t block_size = 64;  ///< is_nf4_block_size()
  bool is_double = true;         ///< double quantisation: scales are 8-bit themselves, in blocks of 256
};

/// Whether the format's own library has blocks of that size: a power of two from 32 to 4096.
bool is_nf4_block_size(std::int64_t block_size);

/// Quantises a weight to NF4 as bitsandbytes does: the same codes, scales and, up to the last bit of their mean, nested
/// scales. A block's elements are multiplied by the fp32 reciprocal of its largest magnitude (a last short block is
/// divided by it) and become the nearest of the 16 values, the smaller one half-way.
///
/// Runs on the calling thread's threads; the result does not depend on their number.
/// @param weight  [out_features, in_features], contiguous, any alignment; bf16, f16, or f32, which the decoded weight
///                is rounded to as well (f64 counts as f32)
/// @param where  begins the message of an error: "quantize: \"text.layers.0.mlp.up_proj\""
/// @return a kNf4 Linear; code_values and nested_values are filled in too
/// @throws Error kCheckpoint if a weight is not finite
EncodedLinear encode_nf4(const TensorView& weight, const Nf4Encoding& encoding, std::string_view where);

/// What the format stores as the bytes of `weight.quant_state.bitsandbytes__nf4`, as Python's json.dumps writes it.
std::string nf4_quant_state(const Nf4& nf4);

}  // namespace treble
