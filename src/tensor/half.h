#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace treble {

/// IEEE binary16 bits as a float; exact.
inline float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return sign ? -magnitude : magnitude;
  }
  const std::uint32_t widened = exponent == 31 ? 0xffu : exponent + (127 - 15);
  return std::bit_cast<float>(sign | (widened << 23) | (mantissa << 13));
}

}  // namespace treble
