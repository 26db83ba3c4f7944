#include "cpu/int8_tiles.h"

#include "cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/int8_tiles.cpp"
#include <hwy/foreach_target.h>  // keep in this order
#include <hwy/highway.h>

#include <algorithm>

#include "cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treble::cpu::HWY_NAMESPACE {

using I32 = hn::ScalableTag<std::int32_t>;
using I16 = hn::ScalableTag<std::int16_t>;
using I8 = hn::Rebind<std::int8_t, I16>;
using VecI32 = hn::Vec<I32>;
using VecI16 = hn::Vec<I16>;

constexpr std::int64_t kCodes = 2 * kLanes;  // in one vector

// As many sums as leave registers for a column of weights and one vector of a token.
constexpr bool kManyRegisters = kLanes >= 16;
constexpr std::int64_t kTileTokens = kManyRegisters ? 6 : 4;
constexpr std::int64_t kTileOutputs = kManyRegisters ? 4 : 3;
static_assert(kPassOutputs % kTileOutputs == 0);

HWY_INLINE VecI16 load_codes(const std::int8_t* from) {
  return hn::PromoteTo(I16(), hn::LoadU(I8(), from));
}

/// The first `count` codes, zeros after them.
HWY_INLINE VecI16 load_codes(const std::int8_t* from, std::int64_t count) {
  if (HWY_LIKELY(count >= kCodes)) return load_codes(from);
  std::int8_t padded[kCodes] = {};
  std::memcpy(padded, from, static_cast<std::size_t>(count));
  return load_codes(padded);
}

/// sums[t, o] = tokens[t] . rows[o]
template <std::int64_t kTokens>
HWY_INLINE void multiply_tile(const std::int8_t* tokens, std::int64_t token_stride,
                              const std::int8_t* const (&rows)[kTileOutputs], std::int64_t in_features,
                              std::int32_t* sums) {
  const I32 i32;
  VecI32 totals[kTokens][kTileOutputs];
#pragma GCC unroll 8
  for (std::int64_t t = 0; t < kTokens; ++t) {
#pragma GCC unroll 8
    for (std::int64_t o = 0; o < kTileOutputs; ++o) totals[t][o] = hn::Zero(i32);
  }
  const auto step = [&](std::int64_t k, std::int64_t count) HWY_ATTR {
    VecI16 weights[kTileOutputs];
#pragma GCC unroll 8
    for (std::int64_t o = 0; o < kTileOutputs; ++o) weights[o] = load_codes(rows[o] + k, count);
#pragma GCC unroll 8
    for (std::int64_t t = 0; t < kTokens; ++t) {
      const VecI16 token = load_codes(tokens + t * token_stride + k, count);
      VecI32 unused = hn::Zero(i32);  // the sum of pairs goes into the first operand on x86
#pragma GCC unroll 8
      for (std::int64_t o = 0; o < kTileOutputs; ++o)
        totals[t][o] = hn::ReorderWidenMulAccumulate(i32, token, weights[o], totals[t][o], unused);
    }
  };
  std::int64_t k = 0;
  for (; k + kCodes <= in_features; k += kCodes) step(k, kCodes);
  if (k < in_features) step(k, in_features - k);
#pragma GCC unroll 8
  for (std::int64_t t = 0; t < kTokens; ++t) {
#pragma GCC unroll 8
    for (std::int64_t o = 0; o < kTileOutputs; ++o)
      sums[t * kPassOutputs + o] = hn::GetLane(hn::SumOfLanes(i32, totals[t][o]));
  }
}

/// The same for a number of tokens known only now.
template <std::int64_t kTokens = kTileTokens>
HWY_INLINE void multiply_tile_of(std::int64_t num_tokens, const std::int8_t* tokens, std::int64_t token_stride,
                                 const std::int8_t* const (&rows)[kTileOutputs], std::int64_t in_features,
                                 std::int32_t* sums) {
  if constexpr (kTokens > 1) {
    if (num_tokens < kTokens)
      return multiply_tile_of<kTokens - 1>(num_tokens, tokens, token_stride, rows, in_features, sums);
  }
  multiply_tile<kTokens>(tokens, token_stride, rows, in_features, sums);
}

template <typename Out>
HWY_INLINE void scale_row(const std::int32_t* sums, float token_scale, const LinearWeight& weight, Out* out) {
  const std::int64_t count = weight.out_features();
  const float* row_scale = weight.int8.row_scale.as<float>();
  const float* bias = weight.bias ? weight.bias.as<float>() : nullptr;
  for (std::int64_t o = 0; o < count; o += kLanes) {
    // Loaded as the floats of the same bits: a load of some elements is at hand for those.
    const VecF32 bits = load(reinterpret_cast<const float*>(sums) + o, count - o);
    VecF32 y = hn::ConvertTo(F32(), hn::BitCast(I32(), bits));
    y = hn::Mul(hn::Mul(y, fill(token_scale)), load(row_scale + o, count - o));
    if (bias) y = hn::Add(y, load(bias + o, count - o));
    store(y, out + o, count - o);
  }
}

void scale_sums(const TensorView& sums, const TensorView& token_scale, const LinearWeight& weight,
                const TensorView& out) {
  for (std::int64_t t = 0; t < sums.size(0); ++t) {
    const std::int32_t* row = sums.as<std::int32_t>() + t * sums.stride(0);
    const float scale = token_scale.as<float>()[t];
    if (out.dtype() == DType::kF32) {
      scale_row(row, scale, weight, out.as<float>() + t * out.stride(0));
    } else {
      scale_row(row, scale, weight, out.as<bfloat16>() + t * out.stride(0));
    }
  }
}

void multiply_int8_pass(const QuantizedInput& tokens, const LinearWeight& weight, const TensorView& product) {
  const std::int64_t num_tokens = tokens.codes.size(0), num_outputs = weight.out_features();
  const std::int64_t token_stride = tokens.codes.stride(0);
  // Sums take the place of the products that they become.
  const TensorView sums(product.data(), DType::kI32, {num_tokens, kPassOutputs});
  for (std::int64_t t = 0; t < num_tokens; t += kTileTokens) {
    for (std::int64_t o = 0; o < num_outputs; o += kTileOutputs) {
      const std::int8_t* rows[kTileOutputs];
      for (std::int64_t i = 0; i < kTileOutputs; ++i)  // past the last row that one again: nobody reads those sums
        rows[i] = weight.weight.as<std::int8_t>() + std::min(o + i, num_outputs - 1) * weight.weight.stride(0);
      multiply_tile_of(std::min(kTileTokens, num_tokens - t), tokens.codes.as<std::int8_t>() + t * token_stride,
                       token_stride, rows, weight.in_features(), sums.as<std::int32_t>() + t * kPassOutputs + o);
    }
  }
  scale_sums(sums, tokens.scale, weight, product);
}

}  // namespace treble::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treble::cpu {

HWY_EXPORT(multiply_int8_pass);
HWY_EXPORT(scale_sums);

void multiply_int8_pass(const QuantizedInput& tokens, const LinearWeight& weight, const TensorView& product) {
  HWY_DYNAMIC_DISPATCH(multiply_int8_pass)(tokens, weight, product);
}

void scale_sums(const TensorView& sums, const TensorView& token_scale, const LinearWeight& weight,
                const TensorView& out) {
  HWY_DYNAMIC_DISPATCH(scale_sums)(sums, token_scale, weight, out);
}

}  // namespace treble::cpu
#endif
