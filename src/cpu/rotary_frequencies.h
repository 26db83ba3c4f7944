#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace treble::cpu {

/// theta^(-i / count), in fp32 like the reference: at position 16383 the last bit is 0.001 rad.
inline std::vector<float> rotary_frequencies(float theta, std::int64_t count) {
  std::vector<float> frequencies;
  for (std::int64_t i = 0; i < count; ++i)
    frequencies.push_back(1.0f / std::pow(theta, static_cast<float>(i) / static_cast<float>(count)));
  return frequencies;
}

}  // namespace treble::cpu
