#pragma once

#include <cstdint>

#include "cuda/rows.cuh"

// What is done to the fp32 sums of a product before they are stored as bf16. A thread has, of a slab of 16 weight rows
// and eight tokens, the sums of two tokens: of row r in sums[0] and [1], of row r + 8 in sums[2] and [3].

namespace treble::cuda {
namespace wgmma_sm90 {

/// out = silu(gate) up of slabs of eight rows of gate and eight of up.
struct SwigluEpilogue {
  static constexpr int kGroups = 1;  // of eight features that a slab makes
  static constexpr bool kAdds = false;

  static __device__ __forceinline__ void finish(const float* sums, std::uint32_t (&packed)[kGroups]) {
    float products[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float gate = round_to<bfloat16>(sums[i]), up = round_to<bfloat16>(sums[2 + i]);
      // Both approximations are good to 2 units of fp32, far below the rounding that follows.
      products[i] = round_to<bfloat16>(__fdividef(gate, 1.0f + __expf(-gate))) * up;
    }
    packed[0] = pack_bf16(products[0], products[1]);
  }
};

struct PlainEpilogue {
  static constexpr int kGroups = 2;
  static constexpr bool kAdds = false;

  static __device__ __forceinline__ void finish(const float* sums, std::uint32_t (&packed)[kGroups]) {
    packed[0] = pack_bf16(sums[0], sums[1]);
    packed[1] = pack_bf16(sums[2], sums[3]);
  }
};

/// The same, added to the output: one rounding of the whole.
struct AddEpilogue {
  static constexpr int kGroups = 2;
  static constexpr bool kAdds = true;

  /// @param packed  in: the old values; out: the new ones
  static __device__ __forceinline__ void finish(const float* sums, std::uint32_t (&packed)[kGroups]) {
#pragma unroll
    for (int g = 0; g < kGroups; ++g)
      packed[g] = pack_bf16(low_bf16(packed[g]) + sums[2 * g], high_bf16(packed[g]) + sums[2 * g + 1]);
  }
};

}  // namespace wgmma_sm90
}  // namespace treble::cuda
