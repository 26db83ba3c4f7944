#pragma once

#include <cstdint>

#include "cuda/alignment.h"
#include "cuda/intrinsics.cuh"
#include "tensor/tensor_view.h"

// Rows of activations in kernels: where they lie, reading and writing eight elements at a time, sums over a warp or a
// block, and the functions that every stage shares.

namespace treble::cuda {

/// Rows of a view whose last dimension is contiguous.
template <typename T>
struct Rows {
  T* data = nullptr;
  std::int64_t stride = 0;

  __device__ T* row(std::int64_t i) const { return data + i * stride; }
};

/// [tokens, heads, head_dim]
template <typename T>
struct Heads {
  T* data = nullptr;
  std::int64_t token_stride = 0, head_stride = 0;

  __device__ T* row(std::int64_t token, std::int64_t head) const {
    return data + token * token_stride + head * head_stride;
  }
};

template <typename T>
Rows<T> rows_of(const TensorView& view) {
  if (!view) return {};
  return {view.as<T>(), view.stride(0)};
}

/// The same, to read only.
template <typename T>
Rows<const T> const_rows(const TensorView& view) {
  if (!view) return {};
  return {view.as<T>(), view.stride(0)};
}

template <typename T>
Heads<T> heads_of(const TensorView& view) {
  if (!view) return {};
  return {view.as<T>(), view.stride(0), view.stride(1)};
}

template <typename T>
Heads<const T> const_heads(const TensorView& view) {
  if (!view) return {};
  return {view.as<T>(), view.stride(0), view.stride(1)};
}

constexpr int kGroup = 8;  // elements that a thread reads at once: 16 bytes of bf16

/// Eight elements as they lie in memory: of bf16 half the registers that their values take.
template <typename T>
struct PackedGroup {
  uint4 words[kGroup * sizeof(T) / sizeof(uint4)];

  /// Elements [i, i + 8) of a row of `count`, zeros past its end.
  __device__ __forceinline__ void load(const T* row, std::int64_t i, std::int64_t count, bool is_aligned) {
    if (is_aligned && i + kGroup <= count) {
      const auto* from = reinterpret_cast<const uint4*>(row + i);
      words[0] = from[0];
      if constexpr (sizeof(T) == 4) words[1] = from[1];
      return;
    }
    float values[kGroup];
#pragma unroll
    for (int j = 0; j < kGroup; ++j) values[j] = i + j < count ? widen(row[i + j]) : 0.0f;
    pack(values);
  }

  /// Rounded to T.
  __device__ __forceinline__ void pack(const float (&values)[kGroup]) {
    if constexpr (sizeof(T) == 2) {
      words[0] = make_uint4(pack_bf16(values[0], values[1]), pack_bf16(values[2], values[3]),
                            pack_bf16(values[4], values[5]), pack_bf16(values[6], values[7]));
    } else {
      words[0] = make_uint4(bits_of(values[0]), bits_of(values[1]), bits_of(values[2]), bits_of(values[3]));
      words[1] = make_uint4(bits_of(values[4]), bits_of(values[5]), bits_of(values[6]), bits_of(values[7]));
    }
  }

  __device__ __forceinline__ void unpack(float (&values)[kGroup]) const {
    if constexpr (sizeof(T) == 2) {
      values[0] = low_bf16(words[0].x), values[1] = high_bf16(words[0].x);
      values[2] = low_bf16(words[0].y), values[3] = high_bf16(words[0].y);
      values[4] = low_bf16(words[0].z), values[5] = high_bf16(words[0].z);
      values[6] = low_bf16(words[0].w), values[7] = high_bf16(words[0].w);
    } else {
      values[0] = float_of(words[0].x), values[1] = float_of(words[0].y);
      values[2] = float_of(words[0].z), values[3] = float_of(words[0].w);
      values[4] = float_of(words[1].x), values[5] = float_of(words[1].y);
      values[6] = float_of(words[1].z), values[7] = float_of(words[1].w);
    }
  }
};

/// The values of elements [i, i + 8) of a row of `count`, zeros past its end.
template <typename T>
__device__ __forceinline__ void load_group(const T* row, std::int64_t i, std::int64_t count, bool is_aligned,
                                           float (&values)[kGroup]) {
  PackedGroup<T> group;
  group.load(row, i, count, is_aligned);
  group.unpack(values);
}

/// Stores them, rounded to T; nothing past the row's end.
template <typename T>
__device__ __forceinline__ void store_group(const float (&values)[kGroup], T* row, std::int64_t i, std::int64_t count,
                                            bool is_aligned) {
  if (is_aligned && i + kGroup <= count) {
    if constexpr (sizeof(T) == 2) {
      *reinterpret_cast<uint4*>(row + i) = make_uint4(pack_bf16(values[0], values[1]), pack_bf16(values[2], values[3]),
                                                      pack_bf16(values[4], values[5]), pack_bf16(values[6], values[7]));
    } else {
      *reinterpret_cast<float4*>(row + i) = make_float4(values[0], values[1], values[2], values[3]);
      *reinterpret_cast<float4*>(row + i + 4) = make_float4(values[4], values[5], values[6], values[7]);
    }
    return;
  }
#pragma unroll
  for (int j = 0; j < kGroup; ++j) {
    if (i + j < count) row[i + j] = narrow<T>(values[j]);
  }
}

/// On every lane.
__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) x += shuffle_xor(x, mask);
  return x;
}
__device__ __forceinline__ float warp_maximum(float x) {
#pragma unroll
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) x = fmaxf(x, shuffle_xor(x, mask));
  return x;
}

/// On every thread of a block of whole warps. @param partial  [32] in shared memory
__device__ __forceinline__ float block_sum(float x, float* partial) {
  x = warp_sum(x);
  sync_block();  // an earlier sum's partials are read
  if (lane_id() == 0) partial[warp_id()] = x;
  sync_block();
  const int num_warps = static_cast<int>(blockDim.x) / kWarpSize;
  return warp_sum(lane_id() < num_warps ? partial[lane_id()] : 0.0f);
}

__device__ __forceinline__ float sigmoid(float x) {
  return 1.0f / (1.0f + expf(-x));
}
__device__ __forceinline__ float silu(float x) {
  return x / (1.0f + expf(-x));
}

/// The same for results of type T. Of those rounded to bf16, 2^-9, an error of some 2^-21 is not seen, and a few
/// instructions do instead of some forty: elementwise kernels would wait for these, not for memory.
template <typename T>
__device__ __forceinline__ float sigmoid_as(float x) {
  if constexpr (sizeof(T) == 2) return divide_approximately(1.0f, 1.0f + exp_approximately(-x));
  return sigmoid(x);
}
template <typename T>
__device__ __forceinline__ float silu_as(float x) {
  if constexpr (sizeof(T) == 2) return divide_approximately(x, 1.0f + exp_approximately(-x));
  return silu(x);
}

template <typename T>
__device__ __forceinline__ float inverse_sqrt_as(float x) {
  if constexpr (sizeof(T) == 2) return inverse_sqrt(x);
  return 1.0f / sqrtf(x);
}

/// GELU in its exact form.
__device__ __forceinline__ float gelu_erf(float x) {
  constexpr float kSqrtHalf = 0.70710678118654752f;
  return 0.5f * x * erfcf(-x * kSqrtHalf);
}

/// The sequence that a token lies in: the last n with cu_seqlens[n] <= token.
__device__ __forceinline__ int sequence_of(const std::int32_t* cu_seqlens, int num_seqs, std::int32_t token) {
  int low = 0, high = num_seqs;  // cu_seqlens[low] <= token < cu_seqlens[high]
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (cu_seqlens[middle] <= token) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace treble::cuda
