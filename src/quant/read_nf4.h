#pragma once

#include "quant/linear_weight.h"
#include "quant/module_tensors.h"

namespace treble {

/// The Linear that bitsandbytes stored as NF4: codes in `weight`, scales in `weight.absmax` (8-bit with double
/// quantisation, then `weight.nested_absmax` and `weight.nested_quant_map` scale them), the values of the codes in
/// `weight.quant_map`, the rest in the JSON of `weight.quant_state.bitsandbytes__nf4`. Large tensors are used where
/// they lie.
/// @throws Error kCheckpoint naming the module: a tensor is missing, unknown, of another size than the JSON's shape
///         implies, or holds values that cannot be scales; the JSON asks for what the format does not have
LinearWeight read_nf4(ModuleTensors& tensors);

}  // namespace treble
