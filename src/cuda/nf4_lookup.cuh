#pragma once

#include <cstdint>

#include "cuda/intrinsics.cuh"

// NF4 weights of a block as bf16 by permuting bytes: the 16 values that a block's codes can have are computed once, one
// fp32 product and one rounding each, and then looked up, four codes an instruction and half of a table. That is 2.9
// instructions a weight, and 0.5 for the table of a block of 64.

namespace treble::cuda {

/// Byte i of the result is byte (selectors >> 4 i) & 7 of low's four and then high's. Selectors below 8.
__device__ __forceinline__ std::uint32_t permute_bytes(std::uint32_t low, std::uint32_t high, std::uint32_t selectors) {
  return __byte_perm(low, high, selectors);
}

class Nf4Lookup {
 public:
  /// @param code_values  [16] in shared memory, 16-byte aligned
  __device__ __forceinline__ Nf4Lookup(const float4* code_values, float scale) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float4 values = code_values[i];
      const std::uint32_t first = pack_bf16(multiply_rounded(values.x, scale), multiply_rounded(values.y, scale));
      const std::uint32_t second = pack_bf16(multiply_rounded(values.z, scale), multiply_rounded(values.w, scale));
      low_[i] = permute_bytes(first, second, 0x6420);
      high_[i] = permute_bytes(first, second, 0x7531);
    }
  }

  /// The eight weights of 32 bits of codes, in order. Of a byte the high half is the first.
  __device__ __forceinline__ uint4 weights(std::uint32_t codes) const {
    std::uint32_t indices = codes & 0x77777777u, is_upper = codes >> 3 & 0x11111111u, pairs[4];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t upper = permute_bytes(0x0000ff00u, 0, is_upper);  // a byte of ones for every code from 8 on
      const std::uint32_t low =
          (permute_bytes(low_[2], low_[3], indices) & upper) | (permute_bytes(low_[0], low_[1], indices) & ~upper);
      const std::uint32_t high =
          (permute_bytes(high_[2], high_[3], indices) & upper) | (permute_bytes(high_[0], high_[1], indices) & ~upper);
      pairs[2 * half] = permute_bytes(low, high, 0x4051);
      pairs[2 * half + 1] = permute_bytes(low, high, 0x6273);
      indices >>= 16, is_upper >>= 16;
    }
    return make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
  }

 private:
  std::uint32_t low_[4], high_[4];  // bytes of the bf16 values of codes 4 i to 4 i + 3
};

}  // namespace treble::cuda
