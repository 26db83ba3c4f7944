#pragma once

#include "quant/linear_weight.h"

namespace treble::cuda {

/// @throws Error kDevice: weights stored so do not run on GPUs
void check_format(const LinearWeight& weight);

}  // namespace treble::cuda
