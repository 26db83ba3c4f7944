#pragma once

#include <bit>
#include <cstdint>

namespace treble {

/// The upper half of an IEEE binary32. Storage only: arithmetic happens in float.
struct bfloat16 {
  std::uint16_t bits;
};

inline float to_float(float x) {
  return x;
}
inline float to_float(bfloat16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

/// Nearest bfloat16, ties to even; NaN stays NaN.
inline bfloat16 to_bfloat16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<std::uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

}  // namespace treble
