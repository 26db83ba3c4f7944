#pragma once

#include <cstdint>

#include "quant/linear_weight.h"

namespace treble {

/// Guesses in which groups an INT8 weight is rotated from its codes alone: 1 (not at all), 64, 256 or 1024. Rotation
/// makes weights look Gaussian, so undoing the right one gives the heaviest tails. The weight's own claim wins unless
/// another group is heavier by far more than chance.
/// @param linear  kInt8, in host memory
std::int64_t likely_rotation_group(const LinearWeight& linear);

}  // namespace treble
