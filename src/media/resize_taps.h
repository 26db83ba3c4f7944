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

  // The same for the outputs of a block at once, where each reads one input further than the one before it: where a
  // size changes by little, nearly all do. Full blocks of kBlock outputs only.
  static constexpr std::int64_t kBlock = 8;
  std::int64_t num_pairs = 0;            ///< of taps that any output has, the last one filled up
  std::vector<std::uint8_t> is_run;      ///< [outputs / kBlock]
  std::vector<std::int16_t> block_taps;  ///< [outputs / kBlock, num_pairs, kBlock, 2]

  const std::int16_t* of(std::int64_t output) const { return taps.data() + output * num_taps; }
};

/// For resizing `size_in` pixels to `size_out`; both at least 1.
ResizeTaps make_resize_taps(std::int64_t size_in, std::int64_t size_out);

}  // namespace treble
