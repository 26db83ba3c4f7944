// RMSNorm of one row, shared by the norms and by attention's queries and keys. Included like cpu/simd-inl.h.

#if defined(TREBLE_CPU_RMS_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TREBLE_CPU_RMS_NORM_INL_H_
#undef TREBLE_CPU_RMS_NORM_INL_H_
#else
#define TREBLE_CPU_RMS_NORM_INL_H_
#endif

#include <cmath>

#include "cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treble::cpu::HWY_NAMESPACE {

/// 1 / sqrt(mean of squares + eps)
HWY_INLINE VecF32 inverse_rms(VecF32 squares, std::int64_t count, float eps) {
  return fill(1.0f / std::sqrt(sum(squares) / static_cast<float>(count) + eps));
}

/// Zero-centred: out = x / rms(x) * (1 + weight). out may be x.
template <typename T>
HWY_INLINE void rms_norm_row(const T* x, const bfloat16* weight, float eps, std::int64_t count, T* out) {
  VecF32 squares = zero();
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const VecF32 value = load(x + i, count - i);
    squares = hn::MulAdd(value, value, squares);
  }
  const VecF32 normalise = inverse_rms(squares, count, eps);
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const VecF32 gain = hn::Add(fill(1.0f), load(weight + i, count - i));
    store(hn::Mul(hn::Mul(load(x + i, count - i), normalise), gain), out + i, count - i);
  }
}

}  // namespace treble::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, once per instruction set
