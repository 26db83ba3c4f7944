#pragma once

#include <cstdint>
#include <string_view>

#include "quant/encoded_linear.h"

namespace treble {

/// The group in which releases are rotated unless their maker chose another one.
inline constexpr std::int64_t kUsualRotationGroup = 256;

/// Quantises a weight as the format's own library does, from fp32: every row is rotated, then
///
///     row_scale = max(max |w| / 127, 1e-30)         code = round(w / row_scale), ties to even
///
/// Runs on the calling thread's threads; the result does not depend on their number.
/// @param weight  [out_features, in_features], contiguous, any floating dtype, any alignment
/// @param rotation_group  1 (not rotated) or a group of is_rotation_group()
/// @param where  begins the message of an error: "quantize: \"text.layers.0.mlp.up_proj\""
/// @return a kInt8 Linear; its row_scale is above 0 in every row
/// @throws Error kCheckpoint if a weight is not finite or the group does not divide in_features
EncodedLinear encode_int8(const TensorView& weight, std::int64_t rotation_group, std::string_view where);

}  // namespace treble
