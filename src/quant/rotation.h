#pragma once

#include <cstdint>

// The rotation of ConvRot: every run of `group` neighbouring features is multiplied by the regular Hadamard matrix
// H4 x H4 x ... / sqrt(group), where H4 has the rows (1 1 1 -1), (1 1 -1 1), (1 -1 1 1), (-1 1 1 1) and x is the
// Kronecker product. It is symmetric and its own inverse. Source: arXiv:2512.03673.

namespace treble {

/// Whether the format has that group for that many features: a power of four up to 4096 that divides them.
bool is_rotation_group(std::int64_t group, std::int64_t num_features);

/// Rotates x [num_features] in place, in the order of sums that the format's own library uses (one radix-4 stage a
/// digit, strides 1, 4, 16, ...). A group of 1 leaves x as it is. @pre is_rotation_group() or group == 1
void rotate(float* x, std::int64_t num_features, std::int64_t group);

}  // namespace treble
