#include "quant/rotation.h"

#include <bit>

namespace treble {

bool is_rotation_group(std::int64_t group, std::int64_t num_features) {
  if (group < 4 || group > 4096 || num_features % group != 0) return false;
  const auto bits = static_cast<std::uint64_t>(group);
  return std::has_single_bit(bits) && std::countr_zero(bits) % 2 == 0;
}

void rotate(float* x, std::int64_t num_features, std::int64_t group) {
  for (std::int64_t stride = 1; stride < group; stride *= 4) {
    for (std::int64_t first = 0; first < num_features; first += 4 * stride) {
      for (float* at = x + first; at < x + first + stride; ++at) {
        const float x0 = at[0], x1 = at[stride], x2 = at[2 * stride], x3 = at[3 * stride];
        at[0] = 0.5f * (((x0 + x1) + x2) - x3);
        at[stride] = 0.5f * (((x0 + x1) - x2) + x3);
        at[2 * stride] = 0.5f * (((x0 - x1) + x2) + x3);
        at[3 * stride] = 0.5f * (((x1 - x0) + x2) + x3);
      }
    }
  }
}

}  // namespace treble
