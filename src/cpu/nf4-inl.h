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

/// The 16 values of the codes, looked up for a whole vector of them.
class Nf4Values {
 public:
  explicit Nf4Values(const float* values) : values_(values) {
    if constexpr (kLanes == 16) low_ = load(values);
    if constexpr (kLanes == 8) {
      low_ = load(values);
      high_ = load(values + 8);
    }
  }

  /// Of the kLanes codes in the bytes at `codes`.
  HWY_INLINE VecF32 operator()(const std::uint8_t* codes) const {
    if constexpr (kLanes >= 8) {
      // Eight codes in 32 bits: each lane shifts its own down.
      alignas(64) static constexpr std::uint32_t kShifts[16] = {4, 0, 12, 8, 20, 16, 28, 24,
                                                                4, 0, 12, 8, 20, 16, 28, 24};
      const U32 u32;
      auto bits = hn::Set(u32, word(codes));
      if constexpr (kLanes == 16) bits = hn::IfThenElse(hn::FirstN(u32, 8), bits, hn::Set(u32, word(codes + 4)));
      const auto code = hn::And(hn::Shr(bits, hn::Load(u32, kShifts)), hn::Set(u32, 15));
      if constexpr (kLanes == 16) return hn::TableLookupLanes(low_, hn::IndicesFromVec(F32(), code));
      const auto index = hn::IndicesFromVec(F32(), hn::And(code, hn::Set(u32, 7)));
      const auto is_low = hn::RebindMask(
          F32(), hn::Lt(hn::BitCast(hn::RebindToSigned<U32>(), code), hn::Set(hn::RebindToSigned<U32>(), 8)));
      return hn::IfThenElse(is_low, hn::TableLookupLanes(low_, index), hn::TableLookupLanes(high_, index));
    } else {
      alignas(16) float out[kLanes];
      for (std::int64_t i = 0; i < kLanes; ++i) out[i] = one(codes, i);
      return hn::Load(F32(), out);
    }
  }

  /// Code `e`, counted from that byte's high half.
  HWY_INLINE float one(const std::uint8_t* codes, std::int64_t e) const {
    return values_[e % 2 == 0 ? codes[e / 2] >> 4 : codes[e / 2] & 15];
  }

 private:
  static HWY_INLINE std::uint32_t word(const std::uint8_t* codes) {
    std::uint32_t out;
    std::memcpy(&out, codes, sizeof out);
    return out;
  }

  const float* values_;
  VecF32 low_, high_;
};

/// Decodes stretches of one weight.
class Nf4Decoder {
 public:
  explicit Nf4Decoder(const LinearWeight& weight)
      : nf4_(weight.nf4), codes_(weight.weight.as<std::uint8_t>()), values_(nf4_.code_values.as<float>()) {}

  const Nf4& nf4() const { return nf4_; }

  /// Elements [begin, begin + count) of the flattened weight.
  HWY_INLINE void decode(std::int64_t begin, std::int64_t count, float* out) const {
    switch (nf4_.dtype) {
      case DType::kBF16:
        return decode_as(begin, count, out, [](VecF32 x) HWY_ATTR { return round_to<bfloat16>(x); });
      case DType::kF16:
        return decode_as(begin, count, out, [](VecF32 x) HWY_ATTR { return round_to_half(x); });
      default:
        return decode_as(begin, count, out, [](VecF32 x) HWY_ATTR { return x; });
    }
  }

 private:
  template <typename Round>
  HWY_INLINE void decode_as(std::int64_t begin, std::int64_t count, float* out, const Round& round) const {
    const std::int64_t end = begin + count;
    for (std::int64_t e = begin; e < end;) {
      const std::int64_t block = e / nf4_.block_size;
      const std::int64_t block_end = std::min((block + 1) * nf4_.block_size, end);
      const VecF32 absmax = fill(nf4_.absmax_of(block));
      if (e % 2 == 0) {
        for (; e + kLanes <= block_end; e += kLanes)
          store(round(hn::Mul(values_(codes_ + e / 2), absmax)), out + e - begin);
      }
      // The rest of a stretch that begins in the middle of a byte or ends in the middle of a vector.
      for (; e < block_end; e += kLanes) {
        const std::int64_t num_left = std::min(kLanes, block_end - e);
        float rest[kLanes] = {};
        for (std::int64_t i = 0; i < num_left; ++i) rest[i] = values_.one(codes_, e + i);
        store(round(hn::Mul(load(rest), absmax)), out + e - begin, num_left);
      }
      e = block_end;
    }
  }

  const Nf4& nf4_;
  const std::uint8_t* codes_;
  Nf4Values values_;
};

}  // namespace treble::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, once per instruction set
