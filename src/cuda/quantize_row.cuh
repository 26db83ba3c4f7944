#pragma once

#include <treble/int8_activations.h>

#include <type_traits>

#include "cuda/choose_quantizer.h"
#include "cuda/launch_shape.h"
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

/// One radix-4 stage.
__device__ __forceinline__ void rotate_four(float& a, float& b, float& c, float& d) {
  const float sum = add_rounded(a, b), difference = add_rounded(a, -b), opposite = add_rounded(b, -a);
  const float x2 = c, x3 = d;
  a = multiply_rounded(0.5f, add_rounded(add_rounded(sum, x2), -x3));
  b = multiply_rounded(0.5f, add_rounded(add_rounded(sum, -x2), x3));
  c = multiply_rounded(0.5f, add_rounded(add_rounded(difference, x2), x3));
  d = multiply_rounded(0.5f, add_rounded(add_rounded(opposite, x2), x3));
}

/// Two stages of sixteen values that follow each other.
__device__ __forceinline__ void rotate_sixteen(float (&x)[16]) {
#pragma unroll
  for (int i = 0; i < 16; i += 4) rotate_four(x[i], x[i + 1], x[i + 2], x[i + 3]);
#pragma unroll
  for (int i = 0; i < 4; ++i) rotate_four(x[i], x[i + 4], x[i + 8], x[i + 12]);
}

/// A value as the modes read it: those of Comfy are defined on bf16.
__device__ __forceinline__ float scaled_input(float x, const float* factor, Int8Activations mode) {
  const bool rounds = mode != Int8Activations::kPrecise;
  if (rounds) x = round_to<bfloat16>(x);
  if (!factor) return x;
  x = multiply_rounded(x, *factor);
  return rounds ? round_to<bfloat16>(x) : x;
}

/// Bits without the sign, which are in the order of the magnitudes: infinity and NaN are above all others.
__device__ __forceinline__ std::uint32_t magnitude_bits(float x) {
  return bits_of(x) & 0x7fffffffu;
}

/// The scale of a row from the largest of its magnitudes.
__device__ __forceinline__ float scale_of(std::uint32_t largest) {
  constexpr std::uint32_t kInfinity = 0x7f800000u, kNan = 0x7fc00000u;
  if (largest >= kInfinity) return float_of(kNan);
  return fmaxf(multiply_rounded(float_of(largest), 1.0f / 127.0f), 1e-30f);
}

/// What the codes of a row are made with.
class CodeMaker {
 public:
  __device__ __forceinline__ CodeMaker(float scale, Int8Activations mode)
      : mode_(mode), by_(mode == Int8Activations::kPrecise ? scale : round_to<bfloat16>(scale)), inverse_(1.0f / by_) {}

  /// 0 in a row without a scale.
  __device__ __forceinline__ std::int8_t operator()(float x) const {
    if (by_ != by_) return 0;
    constexpr float kShift = 12582912.0f;  // 3 * 2^22: sums end in the bits of the nearest integer, ties to even
    if (mode_ == Int8Activations::kPrecise) {
      // The product with the inverse is off by 2e-5 at most, as quotients are 127 at most, and rounds to the same
      // integer as the quotient unless it lies that near to a half.
      float shifted = multiply_add(x, inverse_, kShift);
      const float off = multiply_add(x, inverse_, -(shifted - kShift));
      if (fabsf(off) > 0.4999f) shifted = add_rounded(x / by_, kShift);
      return static_cast<std::int8_t>(bits_of(shifted));
    }
    const float quotient = round_to<bfloat16>(round_to<bfloat16>(x) / by_);
    return static_cast<std::int8_t>(bits_of(add_rounded(fminf(fmaxf(quotient, -128.0f), 127.0f), kShift)));
  }

 private:
  Int8Activations mode_;
  float by_, inverse_;
};

/// On every thread of a block of whole warps. @param partial  [32] in shared memory
__device__ __forceinline__ std::uint32_t block_maximum(std::uint32_t x, std::uint32_t* partial) {
#pragma unroll
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) x = max(x, shuffle_xor(x, mask));
  if (lane_id() == 0) partial[warp_id()] = x;
  sync_block();
  const int num_warps = static_cast<int>(blockDim.x) / kWarpSize;
  x = lane_id() < num_warps ? partial[lane_id()] : 0u;
#pragma unroll
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) x = max(x, shuffle_xor(x, mask));
  return x;
}

/// Rows of groups of 256, a half warp for each group: a lane brings sixteen values that follow each other and ends with
/// those that lie sixteen apart, after an exchange through shared memory.
struct Group256 {
  static constexpr int kLanes = 16, kValues = 16, kWidth = kLanes * kValues;
  // Sixteen values and a gap that puts eight lanes' 16 bytes into different banks; two half warps are half the banks
  // apart.
  static constexpr int kRow = kValues + 4, kFloats = kLanes * kRow + 16;

  /// @param exchange  [kFloats] of the half warp, which may be used again after the next sync_warp()
  __device__ __forceinline__ static void rotate(float (&x)[kValues], int lane, float* exchange) {
    rotate_sixteen(x);
    auto* to = reinterpret_cast<float4*>(exchange + lane * kRow);
#pragma unroll
    for (int i = 0; i < kValues / 4; ++i) to[i] = make_float4(x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]);
    sync_warp();
#pragma unroll
    for (int i = 0; i < kValues; ++i) x[i] = exchange[i * kRow + lane];
    rotate_sixteen(x);
  }

  /// By whole warps. @param exchange  of the half warp, free to use  @param codes  of the group, or null for no use
  __device__ __forceinline__ static void store_codes(const float (&x)[kValues], int lane, const CodeMaker& code,
                                                     float* exchange, std::int8_t* codes) {
    auto* bytes = reinterpret_cast<std::int8_t*>(exchange);
#pragma unroll
    for (int i = 0; i < kValues; ++i) bytes[i * kLanes + lane] = code(x[i]);
    sync_warp();
    if (!codes) return;
    *reinterpret_cast<uint4*>(codes + lane * kValues) = *reinterpret_cast<const uint4*>(bytes + lane * kValues);
  }
};

/// Sixteen values that follow each other.
template <typename T>
__device__ __forceinline__ void load_sixteen(const T* from, float (&x)[16]) {
#pragma unroll
  for (int part = 0; part < 2; ++part) {
    float values[kGroup];
    load_group(from, part * kGroup, 16, true, values);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) x[part * kGroup + j] = values[j];
  }
}
template <typename T>
__device__ __forceinline__ void store_sixteen(const float (&x)[16], T* to) {
#pragma unroll
  for (int part = 0; part < 2; ++part) {
    float values[kGroup];
#pragma unroll
    for (int j = 0; j < kGroup; ++j) values[j] = x[part * kGroup + j];
    store_group(values, to, part * kGroup, 16, true);
  }
}

/// Of kernels that keep little beside the values: threads of a block at most, and blocks in a multiprocessor.
constexpr int most_threads(int groups_of_half_warp) {
  return groups_of_half_warp == 2 ? kTwoGroupThreads : kQuantizerThreads;
}
constexpr int blocks_at_once(int groups_of_half_warp) {
  return groups_of_half_warp == 2 ? 2 : 1;
}

/// A block's row: its half warps take every so many groups, which stay in registers from the values to the codes.
/// @param kGroups  groups of a half warp
/// @param produce  values of group i, of so many, in its lane: void(int i, std::int64_t group, int lane, float
/// (&)[16]);
///                 called by whole warps, and for groups past the row's end for no use
template <int kGroups, typename Produce>
__device__ __forceinline__ void quantize_row(const QuantizeArgs& args, std::int64_t row, std::int64_t num_groups,
                                             const Produce& produce) {
  __shared__ std::uint32_t partial[kWarpSize];
  const int lane = lane_id() % Group256::kLanes, own = static_cast<int>(threadIdx.x) / Group256::kLanes;
  const int num_halves = static_cast<int>(blockDim.x) / Group256::kLanes;
  float* exchange = reinterpret_cast<float*>(dynamic_shared()) + own * Group256::kFloats;
  float x[kGroups][Group256::kValues];
  std::uint32_t largest = 0;
#pragma unroll
  for (int i = 0; i < kGroups; ++i) {
    const std::int64_t group = own + static_cast<std::int64_t>(i) * num_halves;
    produce(i, group, lane, x[i]);
    const std::int64_t first = (group < num_groups ? group : 0) * Group256::kWidth + lane * Group256::kValues;
#pragma unroll
    for (int j = 0; j < Group256::kValues; ++j)
      x[i][j] = scaled_input(x[i][j], args.input_factor ? args.input_factor + first + j : nullptr, args.mode);
    if (i > 0) sync_warp();
    Group256::rotate(x[i], lane, exchange);
    if (args.mode == Int8Activations::kComfyFallback) {
#pragma unroll
      for (int j = 0; j < Group256::kValues; ++j) x[i][j] = round_to<bfloat16>(x[i][j]);
    }
    if (group < num_groups) {
#pragma unroll
      for (int j = 0; j < Group256::kValues; ++j) largest = max(largest, magnitude_bits(x[i][j]));
    }
  }
  const float scale = scale_of(block_maximum(largest, partial));
  const CodeMaker code(scale, args.mode);
  if (threadIdx.x == 0) args.scale[row] = scale;
#pragma unroll
  for (int i = 0; i < kGroups; ++i) {
    const std::int64_t group = own + static_cast<std::int64_t>(i) * num_halves;
    sync_warp();
    Group256::store_codes(x[i], lane, code, exchange,
                          group < num_groups ? args.codes.row(row) + group * Group256::kWidth : nullptr);
  }
}

/// How a kernel that quantises rows with quantize_row() is started, and which of its variants:
/// body(std::integral_constant<int, kGroups>, LaunchShape).
template <typename Body>
void with_group_256_launch(std::int64_t num_rows, std::int64_t width, const Body& body) {
  const std::int64_t num_groups = width / Group256::kWidth;
  const auto start = [&](auto groups) {
    const std::int64_t num_halves = (num_groups + groups - 1) / groups;
    const std::int64_t num_threads = (num_halves + 1) / 2 * kWarpSize;
    body(groups, LaunchShape{.grid = dim3(blocks_for(num_rows, 1)),
                             .num_threads = static_cast<int>(num_threads),
                             .shared_bytes = static_cast<std::size_t>(num_threads / Group256::kLanes) *
                                             Group256::kFloats * sizeof(float),
                             .starts_early = true});
  };
  switch (groups_of_half_warp(num_groups)) {
    case 1:
      return start(std::integral_constant<int, 1>());
    case 2:
      return start(std::integral_constant<int, 2>());
    default:
      return start(std::integral_constant<int, 4>());
  }
}

}  // namespace treble::cuda
