#pragma once

#include <cstdint>

#include "tensor/tensor_view.h"

namespace treble {

/// What belongs to the 8-bit codes of a weight [out_features, in_features]. The weight was rotated along its inputs
/// before it was quantised (rotation.h), so inputs are rotated alike:
///
///     y[o] = (code sums of row o) * s * row_scale[o] + bias[o]        s the scale of the input's row
struct Int8 {
  TensorView row_scale;             ///< [out_features] f32, all above 0
  std::int64_t rotation_group = 1;  ///< a power of four that divides in_features; 1: not rotated
  TensorView input_factor;          ///< [in_features] f32, inputs are multiplied by it before the rotation; or empty
};

}  // namespace treble
