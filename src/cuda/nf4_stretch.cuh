#pragma once

#include <cstdint>

#include "cuda/nf4_stretch.h"
#include "cuda/rows.cuh"

// Decoding NF4 in kernels: one fp32 product, one rounding to the weight's own type, which for bf16 is the end.

namespace treble::cuda {

/// The fp32 scale of a block, each step rounded.
__device__ __forceinline__ float nf4_scale(const Nf4Stretch& of, std::int64_t block) {
  if (!of.nested_values) return static_cast<const float*>(of.absmax)[block];
  const float value = of.nested_values[static_cast<const std::uint8_t*>(of.absmax)[block]];
  return add_rounded(multiply_rounded(value, of.nested_absmax[block >> of.nested_block_shift]), of.nested_offset);
}

/// value * scale as the weight's type holds it.
__device__ __forceinline__ float nf4_product(const Nf4Stretch& of, float value, float scale) {
  const float product = multiply_rounded(value, scale);
  return of.is_half ? low_half(pack_half(product, 0)) : product;
}

/// Eight elements, which 32 bits hold and which have one scale, as bf16. Lane i of the calling warp, of which all lanes
/// call, gives the value of code i % 16.
__device__ __forceinline__ uint4 nf4_decode(const Nf4Stretch& of, std::uint32_t codes, float scale, float lane_value) {
  std::uint32_t words[4];
#pragma unroll
  for (int byte = 0; byte < 4; ++byte) {
    // The high half of a byte is the even element. Of a lane's number the lowest five bits count.
    const int even = static_cast<int>(codes >> (8 * byte + 4)), odd = static_cast<int>(codes << 4 >> (8 * byte + 4));
    words[byte] =
        pack_bf16(nf4_product(of, shuffle(lane_value, even), scale), nf4_product(of, shuffle(lane_value, odd), scale));
  }
  return make_uint4(words[0], words[1], words[2], words[3]);
}

}  // namespace treble::cuda
