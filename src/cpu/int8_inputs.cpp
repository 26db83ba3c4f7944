#include "cpu/int8_inputs.h"

#include "cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/int8_inputs.cpp"
#include <hwy/foreach_target.h>  // keep in this order
#include <hwy/highway.h>

#include <cmath>
#include <limits>

#include "cpu/simd-inl.h"
#include "quant/rotation.h"

HWY_BEFORE_NAMESPACE();
namespace treble::cpu::HWY_NAMESPACE {

/// One radix-4 stage of the rotation, in the order of sums that rotation.h fixes.
template <typename V>
HWY_INLINE void rotate_four(V& a, V& b, V& c, V& d) {
  const auto half = hn::Set(hn::DFromV<V>(), 0.5f);
  const V x0 = a, x1 = b, x2 = c, x3 = d;
  const V sum = hn::Add(x0, x1), difference = hn::Sub(x0, x1);
  a = hn::Mul(half, hn::Sub(hn::Add(sum, x2), x3));
  b = hn::Mul(half, hn::Add(hn::Sub(sum, x2), x3));
  c = hn::Mul(half, hn::Add(hn::Add(difference, x2), x3));
  d = hn::Mul(half, hn::Add(hn::Add(hn::Sub(x1, x0), x2), x3));
}

template <typename V>
HWY_INLINE void transpose_four(V& a, V& b, V& c, V& d) {
  const hn::FixedTag<float, 4> four;
  const auto ac_low = hn::InterleaveLower(four, a, c), ac_high = hn::InterleaveUpper(four, a, c);
  const auto bd_low = hn::InterleaveLower(four, b, d), bd_high = hn::InterleaveUpper(four, b, d);
  a = hn::InterleaveLower(four, ac_low, bd_low);
  b = hn::InterleaveUpper(four, ac_low, bd_low);
  c = hn::InterleaveLower(four, ac_high, bd_high);
  d = hn::InterleaveUpper(four, ac_high, bd_high);
}

/// rotate() of rotation.h, to the same bits.
void rotate_row(float* x, std::int64_t num_features, std::int64_t group) {
  if (group < 16) return rotate(x, num_features, group);
  // Strides 1 and 4: sixteen neighbours are four vectors of four.
  const hn::FixedTag<float, 4> four;
  for (float* at = x; at < x + num_features; at += 16) {
    auto a = hn::LoadU(four, at), b = hn::LoadU(four, at + 4), c = hn::LoadU(four, at + 8),
         d = hn::LoadU(four, at + 12);
    transpose_four(a, b, c, d);
    rotate_four(a, b, c, d);
    transpose_four(a, b, c, d);
    rotate_four(a, b, c, d);
    hn::StoreU(a, four, at);
    hn::StoreU(b, four, at + 4);
    hn::StoreU(c, four, at + 8);
    hn::StoreU(d, four, at + 12);
  }
  static_assert(16 % kLanes == 0);
  for (std::int64_t stride = 16; stride < group; stride *= 4) {
    for (std::int64_t first = 0; first < num_features; first += 4 * stride) {
      for (float* at = x + first; at < x + first + stride; at += kLanes) {
        VecF32 a = load(at), b = load(at + stride), c = load(at + 2 * stride), d = load(at + 3 * stride);
        rotate_four(a, b, c, d);
        store(a, at);
        store(b, at + stride);
        store(c, at + 2 * stride);
        store(d, at + 3 * stride);
      }
    }
  }
}

/// Widens a row into `to`. A value that the bf16 modes would not have is rounded.
template <typename T>
HWY_INLINE void load_row(const T* from, const float* factor, bool rounds, std::int64_t count, float* to) {
  for (std::int64_t i = 0; i < count; i += kLanes) {
    VecF32 x = load(from + i, count - i);
    if (rounds) x = round_to<bfloat16>(x);
    if (factor) x = hn::Mul(x, load(factor + i, count - i));
    if (factor && rounds) x = round_to<bfloat16>(x);
    store(x, to + i, count - i);
  }
}

/// Rounds a row to bf16 in place.
HWY_INLINE void round_row(float* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += kLanes) store(round_to<bfloat16>(load(x + i, count - i)), x + i, count - i);
}

/// The scale of a row; NaN if the row has something that is not finite.
HWY_INLINE float row_scale(const float* x, std::int64_t count) {
  VecF32 largest = zero(), check = zero();
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const VecF32 value = load(x + i, count - i);
    largest = hn::Max(largest, hn::Abs(value));
    check = hn::MulAdd(value, zero(), check);  // stays 0, or becomes NaN
  }
  if (std::isnan(sum(check))) return std::numeric_limits<float>::quiet_NaN();
  return std::max(maximum(largest) * (1.0f / 127.0f), 1e-30f);
}

/// Codes of a row: round(x / divisor), x as it is or with two roundings to bf16.
template <bool kRounds>
HWY_INLINE void write_codes(const float* x, float divisor, std::int64_t count, std::int8_t* codes) {
  const hn::Rebind<std::int8_t, F32> i8;
  const VecF32 by = fill(divisor), low = fill(kRounds ? -128.0f : -127.0f), high = fill(127.0f);
  for (std::int64_t i = 0; i < count; i += kLanes) {
    VecF32 value = load(x + i, count - i);
    value = kRounds ? round_to<bfloat16>(hn::Div(round_to<bfloat16>(value), by)) : hn::Div(value, by);
    const auto code = hn::DemoteTo(i8, hn::NearestInt(hn::Min(hn::Max(value, low), high)));
    if (count - i >= kLanes) {
      hn::StoreU(code, i8, codes + i);
    } else {
      std::int8_t last[kLanes];
      hn::StoreU(code, i8, last);
      std::memcpy(codes + i, last, static_cast<std::size_t>(count - i));
    }
  }
}

void quantize_rows(const TensorView& plain, const QuantizedInput& out, Int8Activations mode, std::int64_t begin,
                   std::int64_t end, float* scratch) {
  const std::int64_t count = plain.size(1);
  const bool is_precise = mode == Int8Activations::kPrecise;
  const float* factor = out.input_factor ? out.input_factor.as<float>() : nullptr;
  for (std::int64_t t = begin; t < end; ++t) {
    if (plain.dtype() == DType::kBF16) {
      load_row(plain.as<bfloat16>() + t * plain.stride(0), factor, !is_precise, count, scratch);
    } else {
      load_row(plain.as<float>() + t * plain.stride(0), factor, !is_precise, count, scratch);
    }
    rotate_row(scratch, count, out.rotation_group);
    if (mode == Int8Activations::kComfyFallback) round_row(scratch, count);
    const float scale = row_scale(scratch, count);
    out.scale.as<float>()[t] = scale;
    std::int8_t* codes = out.codes.as<std::int8_t>() + t * out.codes.stride(0);
    if (std::isnan(scale)) {
      std::memset(codes, 0, static_cast<std::size_t>(count));
    } else if (is_precise) {
      write_codes<false>(scratch, scale, count, codes);
    } else {
      write_codes<true>(scratch, to_float(to_bfloat16(scale)), count, codes);
    }
  }
}

}  // namespace treble::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treble::cpu {

HWY_EXPORT(quantize_rows);

void quantize_rows(const TensorView& plain, const QuantizedInput& out, Int8Activations mode, std::int64_t begin,
                   std::int64_t end, float* scratch) {
  HWY_DYNAMIC_DISPATCH(quantize_rows)(plain, out, mode, begin, end, scratch);
}

}  // namespace treble::cpu
#endif
