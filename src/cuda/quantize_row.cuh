#pragma once

#include <treble/int8_activations.h>

#include "cuda/rows.cuh"
#include "ops/ops.h"

// Rotating and quantising rows in kernels, to the codes of src/cpu/int8_inputs.cpp: the sums of the rotation in the
// order that quant/rotation.h fixes, each rounded.

namespace treble::cuda {

/// Where codes go, and what they are made by.
struct QuantizeArgs {
  Int8Activations mode;
  const float* input_factor;  // [width], or null
  Rows<std::int8_t> codes;
  float* scale;
};

inline QuantizeArgs quantize_args(const QuantizedInput& out, Int8Activations mode) {
  return {mode, out.input_factor ? out.input_factor.as<float>() : nullptr, rows_of<std::int8_t>(out.codes),
          out.scale.as<float>()};
}

/// One radix-4 stage. A half of a sum's last step is as good as half of the sum: both are rounded once.
__device__ __forceinline__ void rotate_four(float& a, float& b, float& c, float& d) {
  const float sum = add_rounded(a, b), difference = add_rounded(a, -b);
  const float x2 = c, half = multiply_rounded(0.5f, d);
  a = multiply_add(add_rounded(sum, x2), 0.5f, -half);
  b = multiply_add(add_rounded(sum, -x2), 0.5f, half);
  c = multiply_add(add_rounded(difference, x2), 0.5f, half);
  d = multiply_add(add_rounded(x2, -difference), 0.5f, half);
}

/// Twice what a stage gives, for those who take the half later.
__device__ __forceinline__ void rotate_four_to_twice(float& a, float& b, float& c, float& d) {
  const float sum = add_rounded(a, b), difference = add_rounded(a, -b);
  const float x2 = c, x3 = d;
  a = add_rounded(add_rounded(sum, x2), -x3);
  b = add_rounded(add_rounded(sum, -x2), x3);
  c = add_rounded(add_rounded(difference, x2), x3);
  d = add_rounded(add_rounded(x2, -difference), x3);
}

/// Two stages of sixteen values that follow each other.
__device__ __forceinline__ void rotate_sixteen(float (&x)[16]) {
#pragma unroll
  for (int i = 0; i < 16; i += 4) rotate_four(x[i], x[i + 1], x[i + 2], x[i + 3]);
#pragma unroll
  for (int i = 0; i < 4; ++i) rotate_four(x[i], x[i + 4], x[i + 8], x[i + 12]);
}
__device__ __forceinline__ void rotate_sixteen_to_twice(float (&x)[16]) {
#pragma unroll
  for (int i = 0; i < 16; i += 4) rotate_four(x[i], x[i + 1], x[i + 2], x[i + 3]);
#pragma unroll
  for (int i = 0; i < 4; ++i) rotate_four_to_twice(x[i], x[i + 4], x[i + 8], x[i + 12]);
}

/// A value as the modes read it: those of Comfy are defined on bf16.
__device__ __forceinline__ float scaled_input(float x, const float* factor, Int8Activations mode) {
  const bool rounds = mode != Int8Activations::kPrecise;
  if (rounds) x = round_to<bfloat16>(x);
  if (!factor) return x;
  x = multiply_rounded(x, *factor);
  return rounds ? round_to<bfloat16>(x) : x;
}

/// The scale of a row from the largest of its magnitudes, which is NaN if one of them was.
__device__ __forceinline__ float scale_of(float largest) {
  constexpr std::uint32_t kInfinity = 0x7f800000u, kNan = 0x7fc00000u;
  if (bits_of(largest) >= kInfinity) return float_of(kNan);
  return fmaxf(multiply_rounded(largest, 1.0f / 127.0f), 1e-30f);
}

/// What the codes of a row are made with: values arrive as multiples of `unit`, a power of two.
class CodeMaker {
 public:
  __device__ __forceinline__ CodeMaker(float scale, float unit, Int8Activations mode) : mode_(mode) {
    const float by = mode == Int8Activations::kPrecise ? scale : round_to<bfloat16>(scale);
    by_ = by / unit;
    inverse_ = 1.0f / by_;
  }

  /// Whether the row has no scale; its codes are 0.
  __device__ __forceinline__ bool is_undefined() const { return by_ != by_; }

  /// The code in the lowest byte, in a row with a scale.
  __device__ __forceinline__ std::uint32_t operator()(float x) const {
    constexpr float kShift = 12582912.0f;  // 3 * 2^22: sums end in the bits of the nearest integer, ties to even
    if (mode_ == Int8Activations::kPrecise) return bits_of(add_rounded(quotient(x), kShift));
    const float rounded = round_to<bfloat16>(quotient(round_to<bfloat16>(x)));
    return bits_of(add_rounded(fminf(fmaxf(rounded, -128.0f), 127.0f), kShift));
  }

 private:
  /// x / by_, rounded once: a product with the inverse, and one correction by what it left. Exact where nothing
  /// underflows, as the inverse is rounded once (P. Markstein, 1990); quotients that are so small have code 0 anyway.
  __device__ __forceinline__ float quotient(float x) const {
    const float first = multiply_rounded(x, inverse_);
    return multiply_add(multiply_add(-first, by_, x), inverse_, first);
  }

  Int8Activations mode_;
  float by_, inverse_;
};

/// The largest magnitude of a block's, on every thread of a block of whole warps; NaN where one is.
/// @param partial  [32] in shared memory
__device__ __forceinline__ float block_magnitude(float x, float* partial) {
#pragma unroll
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) x = larger_magnitude(x, shuffle_xor(x, mask));
  if (lane_id() == 0) partial[warp_id()] = x;
  sync_block();
  const int num_warps = static_cast<int>(blockDim.x) / kWarpSize;
  x = lane_id() < num_warps ? partial[lane_id()] : 0.0f;
#pragma unroll
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) x = larger_magnitude(x, shuffle_xor(x, mask));
  return x;
}

/// Rows of groups of 256, a half warp for each group: a lane brings sixteen values that follow each other and ends with
/// those that lie sixteen apart, after an exchange through shared memory.
struct Group256 {
  static constexpr int kLanes = 16, kValues = 16, kWidth = kLanes * kValues;
  // Sixteen values and a gap that puts eight lanes' 16 bytes into different banks; two half warps are half the banks
  // apart.
  static constexpr int kRow = kValues + 4, kFloats = kLanes * kRow + 16;

  /// Ends with twice the rotated values.
  /// @param exchange  [kFloats] of the half warp, which may be used again after the next sync_warp()
  __device__ __forceinline__ static void rotate(float (&x)[kValues], int lane, float* exchange) {
    rotate_sixteen(x);
    auto* to = reinterpret_cast<float4*>(exchange + lane * kRow);
#pragma unroll
    for (int i = 0; i < kValues / 4; ++i) to[i] = make_float4(x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]);
    sync_warp();
#pragma unroll
    for (int i = 0; i < kValues; ++i) x[i] = exchange[i * kRow + lane];
    rotate_sixteen_to_twice(x);
  }

  /// By whole warps. @param exchange  of the half warp, free to use  @param codes  of the group, or null for no use
  __device__ __forceinline__ static void store_codes(const float (&x)[kValues], int lane, const CodeMaker& make_code,
                                                     float* exchange, std::int8_t* codes) {
    auto* bytes = reinterpret_cast<std::uint8_t*>(exchange);
    if (make_code.is_undefined()) {
#pragma unroll
      for (int i = 0; i < kValues; ++i) bytes[i * kLanes + lane] = 0;
    } else {
#pragma unroll
      for (int i = 0; i < kValues; ++i) bytes[i * kLanes + lane] = static_cast<std::uint8_t>(make_code(x[i]));
    }
    sync_warp();
    if (!codes) return;
    *reinterpret_cast<uint4*>(codes + lane * kValues) = *reinterpret_cast<const uint4*>(bytes + lane * kValues);
  }
};

}  // namespace treble::cuda
