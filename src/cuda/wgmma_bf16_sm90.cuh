#pragma once

#include <cuda.h>

#include <cstdint>

#include "cuda/wgmma_sm90.cuh"

// Operands of bf16 for wgmma_product_sm90.cuh.

namespace treble::cuda {
namespace wgmma_sm90 {

struct Bf16Operands {
  using Sum = float;
  static constexpr int kElementBytes = 2;
  static constexpr CUtensorMapDataType kType = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  static constexpr int kScaleBytes = 0;

  template <int kTokens>
  static __device__ __forceinline__ void multiply(float (&sums)[kTokens / 2], std::uint64_t weight,
                                                  std::uint64_t tokens, int adds) {
    Wgmma<kTokens>::multiply(sums, weight, tokens, adds);
  }

  /// Sums are values already.
  struct Scales {
    template <int kRows, int kTokens>
    __device__ __forceinline__ void load(std::uint32_t, int, int) const {}
  };
  struct Scaling {
    __device__ __forceinline__ Scaling(std::uint32_t, int) {}
    template <typename Epilogue>
    __device__ __forceinline__ void finish(const float* sums, int, std::uint32_t (&packed)[Epilogue::kGroups]) const {
      Epilogue::finish(sums, packed);
    }
  };
};

}  // namespace wgmma_sm90
}  // namespace treble::cuda
