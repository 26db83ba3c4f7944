#pragma once

#include "quant/linear_weight.h"
#include "quant/module_tensors.h"

namespace treble {

/// The Linear stored as INT8 in Comfy's layout: codes in `weight`, `weight_scale` a row (or one for all), a bias, and a
/// JSON `comfy_quant` that says whether and in which groups the weight is rotated. Other names of the same tensors are
/// read as well (docs/weights.md). Codes are used where they lie.
/// Two other orders are accepted and copied into this one: [K, N] where the description says "transposed", and of two
/// fused projections [N, 2, K], which becomes [2 N, K] with the first one's rows first.
/// @param config  what the file's header says of the module, for releases without comfy_quant; or nullptr
/// @throws Error kCheckpoint naming the module: a tensor is missing, unknown, contradicts another or has another size;
///         a scale is 0, negative or not finite; the rotation's group does not divide the inputs
LinearWeight read_int8(ModuleTensors& tensors, const Json* config);

/// The Linear stored as compressed-tensors stores `int-quantized`: codes in `weight`, `weight_scale` a row (or one for
/// all), symmetric. Weights become a copy in bf16: one fp32 product, one rounding. Scales of activations are not used.
/// @throws Error kCheckpoint as above
LinearWeight read_int_quantized(ModuleTensors& tensors);

}  // namespace treble
