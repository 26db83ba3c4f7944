#pragma once

#include <cstdint>
#include <vector>

namespace treble {

/// The resize filter of one axis: antialiased bicubic (a = -0.5) in fixed point, as torchvision computes it for 8-bit
/// pictures on CPUs. Output o is (2^(fraction_bits - 1) + sum over i of tap i * input[first[o] + i]) >> fraction_bits,
/// limited to 0..255.
struct ResizeTaps {
  std::int64_t num_taps = 0;        ///< of every output; a multiple of 8, filled up with zeros
  std::vector<std::int32_t> first;  ///< [outputs] first input that is read
  std::vector<std::int32_t> count;  ///< [outputs] taps that are not filling; first + count never exceeds the inputs
  std::vector<std::int16_t> taps;   ///< [outputs, num_taps]
  int fraction_bits = 0;            ///< the most, up to 22, with which the largest tap stays below 2^15

  const std::int16_t* of(std::int64_t output) const { return taps.data() + output * num_taps; }
};

/// For resizing `size_in` pixels to `size_out`; both at least 1.
ResizeTaps make_resize_taps(std::int64_t size_in, std::int64_t size_out);

}  // namespace treble
