// NF4 codes as the numbers they stand for. Included once per instruction set, like simd-inl.h.

#if defined(TREBLE_CPU_NF4_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TREBLE_CPU_NF4_INL_H_
#undef TREBLE_CPU_NF4_INL_H_
#else
#define TREBLE_CPU_NF4_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "cpu/simd-inl.h"
#include "quant/linear_weight.h"

HWY_BEFORE_NAMESPACE();
namespace treble::cpu::HWY_NAMESPACE {

/// x as f16 holds it, ties to even. Highway's own conversion rounds otherwise where the processor has none.
HWY_INLINE VecF32 round_to_half(VecF32 x) {
  const U32 u32;
  const VecF32 size = hn::Abs(x);
  // Ten bits of mantissa are kept.
  const auto bits = hn::BitCast(u32, size);
  const auto odd = hn::And(hn::ShiftRight<13>(bits), hn::Set(u32, 1));
  const auto nearest = hn::And(hn::Add(hn::Add(bits, hn::Set(u32, 0xfff)), odd), hn::Set(u32, ~0x1fffu));
  VecF32 rounded = hn::BitCast(F32(), nearest);
  // Below 2^-14 the steps are 2^-24, as those of fp32 are between 0.5 and 1. From 65520 on it is infinity.
  const VecF32 small = hn::Sub(hn::Add(size, fill(0.5f)), fill(0.5f));
  rounded = hn::IfThenElse(hn::Lt(size, fill(0x1p-14f)), small, rounded);
  rounded = hn::IfThenElse(hn::Ge(size, fill(65520.0f)), hn::Inf(F32()), rounded);
  return hn::CopySign(rounded, x);
}

/// Decodes stretches of one weight.
class Nf4Decoder {
 public:
  /// Floats of a buffer for `count` weights: a stretch may begin and end in the middle of a byte.
  static constexpr std::int64_t room(std::int64_t count) { return count + 2; }

  explicit Nf4Decoder(const LinearWeight& weight) : nf4_(weight.nf4), codes_(weight.weight.as<std::uint8_t>()) {
    const float* values = nf4_.code_values.as<float>();
    for (int byte = 0; byte < 256; ++byte) {
      pairs_[byte][0] = values[byte >> 4];
      pairs_[byte][1] = values[byte & 15];
    }
  }

  const Nf4& nf4() const { return nf4_; }

  /// Elements [begin, begin + count) of the flattened weight. @return where in `buffer` the first of them is
  HWY_INLINE const float* decode(std::int64_t begin, std::int64_t count, float* buffer) const {
    const std::int64_t end = begin + count, first = begin / 2 * 2;
    for (std::int64_t e = first; e < end; e += 2) std::memcpy(buffer + e - first, pairs_[codes_[e / 2]], 8);
    float* values = buffer + begin - first;
    switch (nf4_.dtype) {
      case DType::kBF16:
        scale(begin, end, values, [](VecF32 x) HWY_ATTR { return round_to<bfloat16>(x); });
        break;
      case DType::kF16:
        scale(begin, end, values, [](VecF32 x) HWY_ATTR { return round_to_half(x); });
        break;
      default:
        scale(begin, end, values, [](VecF32 x) HWY_ATTR { return x; });
    }
    return values;
  }

 private:
  template <typename Round>
  HWY_INLINE void scale(std::int64_t begin, std::int64_t end, float* values, const Round& round) const {
    for (std::int64_t e = begin; e < end;) {
      const std::int64_t block = e / nf4_.block_size;
      const std::int64_t block_end = std::min((block + 1) * nf4_.block_size, end);
      const VecF32 absmax = fill(nf4_.absmax_of(block));
      for (; e < block_end; e += kLanes) {
        float* at = values + e - begin;
        store(round(hn::Mul(load(at, block_end - e), absmax)), at, block_end - e);
      }
      e = block_end;
    }
  }

  const Nf4& nf4_;
  const std::uint8_t* codes_;
  float pairs_[256][2];  // of a byte: the high half's value, then the low half's
};

}  // namespace treble::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, once per instruction set
