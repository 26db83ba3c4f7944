// Vectors of fp32 over arrays of float or bfloat16. Included once per instruction set, from files that go through
// hwy/foreach_target.h; such a file starts with:
//
//     #include "cpu/simd_targets.h"
//     #undef HWY_TARGET_INCLUDE
//     #define HWY_TARGET_INCLUDE "cpu/norms.cpp"
//     #include <hwy/foreach_target.h>  // keep in this order
//     #include <hwy/highway.h>
//     #include "cpu/simd-inl.h"
//
// The loop over an array, whatever its length:
//
//     for (std::int64_t i = 0; i < count; i += kLanes) store(load(in + i, count - i) * ..., out + i, count - i);

#if defined(TREBLE_CPU_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TREBLE_CPU_SIMD_INL_H_
#undef TREBLE_CPU_SIMD_INL_H_
#else
#define TREBLE_CPU_SIMD_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tensor/bfloat16.h"

HWY_BEFORE_NAMESPACE();
namespace treble::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using U32 = hn::RebindToUnsigned<F32>;
using U16 = hn::Rebind<std::uint16_t, F32>;  // as many lanes, half as wide
using VecF32 = hn::Vec<F32>;

constexpr std::int64_t kLanes = static_cast<std::int64_t>(hn::MaxLanes(F32()));

HWY_INLINE VecF32 zero() {
  return hn::Zero(F32());
}
HWY_INLINE VecF32 fill(float x) {
  return hn::Set(F32(), x);
}

/// kLanes elements, widened.
HWY_INLINE VecF32 load(const float* from) {
  return hn::LoadU(F32(), from);
}
HWY_INLINE VecF32 load(const bfloat16* from) {
  const auto bits = hn::LoadU(U16(), reinterpret_cast<const std::uint16_t*>(from));
  return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(U32(), bits)));
}

/// The bits of the nearest bfloat16s in the lower halves, ties to even; NaN stays NaN.
HWY_INLINE hn::Vec<U32> bfloat16_bits(VecF32 x) {
  const U32 u32;
  const auto bits = hn::BitCast(u32, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(u32, 1));
  const auto nearest = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(u32, 0x7fff)), odd));
  const auto nan = hn::Or(hn::ShiftRight<16>(bits), hn::Set(u32, 0x40));
  return hn::IfThenElse(hn::RebindMask(u32, hn::IsNaN(x)), nan, nearest);
}

/// Stores kLanes elements, rounded to the destination's type.
HWY_INLINE void store(VecF32 x, float* to) {
  hn::StoreU(x, F32(), to);
}
HWY_INLINE void store(VecF32 x, bfloat16* to) {
  const auto bits = hn::BitCast(hn::RebindToSigned<U32>(), bfloat16_bits(x));
  hn::StoreU(hn::DemoteTo(U16(), bits), U16(), reinterpret_cast<std::uint16_t*>(to));
}

/// The first `count` elements (count > 0), zeros after them; nothing is read past them. A count of kLanes and more is a
/// whole vector.
template <typename T>
HWY_INLINE VecF32 load(const T* from, std::int64_t count) {
  if (HWY_LIKELY(count >= kLanes)) return load(from);
  T padded[kLanes] = {};
  std::memcpy(padded, from, static_cast<std::size_t>(count) * sizeof(T));
  return load(padded);
}

/// Stores the first `count` elements (count > 0), or the whole vector when count is kLanes and more.
template <typename T>
HWY_INLINE void store(VecF32 x, T* to, std::int64_t count) {
  if (HWY_LIKELY(count >= kLanes)) return store(x, to);
  T padded[kLanes];
  store(x, padded);
  std::memcpy(to, padded, static_cast<std::size_t>(count) * sizeof(T));
}

/// What x becomes when it is stored as T and loaded again.
template <typename T>
HWY_INLINE VecF32 round_to(VecF32 x) {
  if constexpr (std::is_same_v<T, float>) {
    return x;
  } else {
    return hn::BitCast(F32(), hn::ShiftLeft<16>(bfloat16_bits(x)));
  }
}

HWY_INLINE float sum(VecF32 x) {
  return hn::GetLane(hn::SumOfLanes(F32(), x));
}
HWY_INLINE float maximum(VecF32 x) {
  return hn::GetLane(hn::MaxOfLanes(F32(), x));
}

/// Within 2 units in the last place; 0 below -104, infinity above 88.8; NaN stays NaN.
HWY_INLINE VecF32 exponential(VecF32 x) {
  // Above 89 the library's scaling overflows into the sign bit.
  const VecF32 y = hn::Exp(F32(), hn::Min(x, fill(89.0f)));
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

HWY_INLINE VecF32 sigmoid(VecF32 x) {
  return hn::Div(fill(1.0f), hn::Add(fill(1.0f), exponential(hn::Neg(x))));
}

HWY_INLINE VecF32 silu(VecF32 x) {
  return hn::Div(x, hn::Add(fill(1.0f), exponential(hn::Neg(x))));
}

}  // namespace treble::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, once per instruction set
