#include "cpu/int8_inputs.h"

#include "cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/int8_inputs.cpp"
#include <hwy/foreach_target.h>  // keep in this order
#include <hwy/highway.h>

#include <bit>
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

/// In every block of four lanes: four vectors of four become columns.
template <typename D>
HWY_INLINE void transpose_four(D d, hn::Vec<D>& a, hn::Vec<D>& b, hn::Vec<D>& c, hn::Vec<D>& e) {
  const auto ac_low = hn::InterleaveLower(d, a, c), ac_high = hn::InterleaveUpper(d, a, c);
  const auto be_low = hn::InterleaveLower(d, b, e), be_high = hn::InterleaveUpper(d, b, e);
  a = hn::InterleaveLower(d, ac_low, be_low);
  b = hn::InterleaveUpper(d, ac_low, be_low);
  c = hn::InterleaveLower(d, ac_high, be_high);
  e = hn::InterleaveUpper(d, ac_high, be_high);
}

/// Blocks of four lanes from or to places that lie sixteen floats apart.
template <typename D>
HWY_INLINE hn::Vec<D> load_fours(D d, const float* from) {
  constexpr auto kCount = static_cast<std::int64_t>(hn::MaxLanes(D()));
  if constexpr (kCount == 4) {
    return hn::LoadU(d, from);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, load_fours(half, from + 2 * kCount), load_fours(half, from));
  }
}
template <typename D>
HWY_INLINE void store_fours(D d, hn::Vec<D> x, float* to) {
  constexpr auto kCount = static_cast<std::int64_t>(hn::MaxLanes(D()));
  if constexpr (kCount == 4) {
    hn::StoreU(x, d, to);
  } else {
    const hn::Half<D> half;
    store_fours(half, hn::LowerHalf(half, x), to);
    store_fours(half, hn::UpperHalf(half, x), to + 2 * kCount);
  }
}

/// Strides 1 and 4 of as many runs of sixteen neighbours as a vector has blocks: such a run is four times four.
template <typename D>
HWY_INLINE void rotate_sixteens(D d, float* at) {
  auto a = load_fours(d, at), b = load_fours(d, at + 4), c = load_fours(d, at + 8), e = load_fours(d, at + 12);
  transpose_four(d, a, b, c, e);
  rotate_four(a, b, c, e);
  transpose_four(d, a, b, c, e);
  rotate_four(a, b, c, e);
  store_fours(d, a, at);
  store_fours(d, b, at + 4);
  store_fours(d, c, at + 8);
  store_fours(d, e, at + 12);
}

/// rotate() of rotation.h, to the same bits.
void rotate_row(float* x, std::int64_t num_features, std::int64_t group) {
  if (group < 16) return rotate(x, num_features, group);
  constexpr std::int64_t kAtOnce = 4 * kLanes;
  std::int64_t done = 0;
  for (; done + kAtOnce <= num_features; done += kAtOnce) rotate_sixteens(F32(), x + done);
  for (; done < num_features; done += 16) rotate_sixteens(hn::FixedTag<float, 4>(), x + done);
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

/// Calls body(i, number of elements from i on that count) for every vector of a row: four at a time while there are.
template <typename Body>
HWY_INLINE void for_each_vector(std::int64_t count, const Body& body) {
  std::int64_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    body(i, kLanes);
    body(i + kLanes, kLanes);
    body(i + 2 * kLanes, kLanes);
    body(i + 3 * kLanes, kLanes);
  }
  for (; i < count; i += kLanes) body(i, count - i);
}

/// Widens a row into `to`. A value that the bf16 modes would not have is rounded.
template <bool kRounds, typename T>
HWY_INLINE void load_row(const T* from, const float* factor, std::int64_t count, float* to) {
  const auto rounded = [](VecF32 x) HWY_ATTR { return kRounds ? round_to<bfloat16>(x) : x; };
  if (!factor) {
    for_each_vector(
        count, [&](std::int64_t i, std::int64_t rest) HWY_ATTR { store(rounded(load(from + i, rest)), to + i, rest); });
    return;
  }
  for_each_vector(count, [&](std::int64_t i, std::int64_t rest) HWY_ATTR {
    store(rounded(hn::Mul(rounded(load(from + i, rest)), load(factor + i, rest))), to + i, rest);
  });
}

/// Rounds a row to bf16 in place.
HWY_INLINE void round_row(float* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += kLanes) store(round_to<bfloat16>(load(x + i, count - i)), x + i, count - i);
}

/// The scale of a row; NaN if the row has something that is not finite.
HWY_INLINE float row_scale(const float* x, std::int64_t count) {
  // Bits without the sign are in the order of the magnitudes, infinity and NaN above all others.
  const hn::RebindToSigned<F32> i32;
  const auto magnitude = hn::Set(i32, 0x7fffffff);
  auto largest = hn::Zero(i32);
  for_each_vector(count, [&](std::int64_t i, std::int64_t rest) HWY_ATTR {
    largest = hn::Max(largest, hn::And(hn::BitCast(i32, load(x + i, rest)), magnitude));
  });
  const float value = std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(i32, largest)));
  if (!std::isfinite(value)) return std::numeric_limits<float>::quiet_NaN();
  return std::max(value * (1.0f / 127.0f), 1e-30f);
}

using I8 = hn::Rebind<std::int8_t, F32>;

HWY_INLINE void store_codes(hn::Vec<I8> code, std::int64_t count, std::int8_t* codes) {
  if (HWY_LIKELY(count >= kLanes)) return hn::StoreU(code, I8(), codes);
  std::int8_t last[kLanes];
  hn::StoreU(code, I8(), last);
  std::memcpy(codes, last, static_cast<std::size_t>(count));
}

/// Codes of a row: round(x / scale).
HWY_INLINE void write_codes(const float* x, float scale, std::int64_t count, std::int8_t* codes) {
  // Divisions are slow. The product with the inverse is off by 2e-5 at most, as quotients are 127 at most, and rounds
  // to the same integer unless it lies that near to a half: then, a few times in a thousand vectors, it is divided.
  const U32 u32;
  const hn::Rebind<std::uint8_t, F32> u8;
  const VecF32 by = fill(scale), inverse = fill(1.0f / scale), near_half = fill(0.4999f);
  const VecF32 shift = fill(12582912.0f);  // 3 * 2^22: sums end in the bits of the nearest integer, ties to even
  constexpr std::int64_t kVectors = 4;
  std::int64_t i = 0;
  for (; i + kVectors * kLanes <= count; i += kVectors * kLanes) {
    VecF32 sums[kVectors], off = zero();
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < kVectors; ++j) {
      const VecF32 value = load(x + i + j * kLanes);
      sums[j] = hn::MulAdd(value, inverse, shift);
      off = hn::Max(off, hn::Abs(hn::MulSub(value, inverse, hn::Sub(sums[j], shift))));
    }
    if (HWY_UNLIKELY(!hn::AllFalse(F32(), hn::Gt(off, near_half)))) {
      for (std::int64_t j = 0; j < kVectors; ++j) sums[j] = hn::Add(hn::Div(load(x + i + j * kLanes), by), shift);
    }
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < kVectors; ++j) {
      hn::StoreU(hn::TruncateTo(u8, hn::BitCast(u32, sums[j])), u8,
                 reinterpret_cast<std::uint8_t*>(codes) + i + j * kLanes);
    }
  }
  for (; i < count; i += kLanes)
    store_codes(hn::DemoteTo(I8(), hn::NearestInt(hn::Div(load(x + i, count - i), by))), count - i, codes + i);
}

/// The same with roundings to bf16 before and after the division.
HWY_INLINE void write_rounded_codes(const float* x, float scale, std::int64_t count, std::int8_t* codes) {
  const VecF32 by = fill(to_float(to_bfloat16(scale))), low = fill(-128.0f), high = fill(127.0f);
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const VecF32 value = round_to<bfloat16>(load(x + i, count - i));
    const VecF32 quotient = round_to<bfloat16>(hn::Div(value, by));
    store_codes(hn::DemoteTo(I8(), hn::NearestInt(hn::Min(hn::Max(quotient, low), high))), count - i, codes + i);
  }
}

void quantize_rows(const TensorView& plain, const QuantizedInput& out, Int8Activations mode, std::int64_t begin,
                   std::int64_t end, float* scratch) {
  const std::int64_t count = plain.size(1);
  const bool is_precise = mode == Int8Activations::kPrecise;
  const float* factor = out.input_factor ? out.input_factor.as<float>() : nullptr;
  for (std::int64_t t = begin; t < end; ++t) {
    const auto load_from = [&](const auto* rows) {
      const auto* row = rows + t * plain.stride(0);
      is_precise ? load_row<false>(row, factor, count, scratch) : load_row<true>(row, factor, count, scratch);
    };
    plain.dtype() == DType::kBF16 ? load_from(plain.as<bfloat16>()) : load_from(plain.as<float>());
    rotate_row(scratch, count, out.rotation_group);
    if (mode == Int8Activations::kComfyFallback) round_row(scratch, count);
    const float scale = row_scale(scratch, count);
    out.scale.as<float>()[t] = scale;
    std::int8_t* codes = out.codes.as<std::int8_t>() + t * out.codes.stride(0);
    if (std::isnan(scale)) {
      std::memset(codes, 0, static_cast<std::size_t>(count));
    } else if (is_precise) {
      write_codes(scratch, scale, count, codes);
    } else {
      write_rounded_codes(scratch, scale, count, codes);
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
