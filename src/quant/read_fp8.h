#pragma once

#include "quant/linear_weight.h"
#include "quant/module_tensors.h"

namespace treble {

/// The Linear stored as 8-bit floats (E4M3, no infinities): `weight`, and its scale as `weight_scale` or
/// `weight_scale_inv` (which is multiplied too): one, one a row, or one for each block of 128 rows by 128 inputs.
/// Weights become a copy in bf16: one fp32 product, one rounding. Scales of activations are not used.
/// @throws Error kCheckpoint naming the module: a tensor is missing, unknown or of another size, a scale is not above
/// 0,
///         a code is NaN
LinearWeight read_fp8(ModuleTensors& tensors);

}  // namespace treble
