#include "media/pixel_rows.h"

#include "base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "media/pixel_rows.cpp"
#include <hwy/foreach_target.h>  // keep in this order
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace treble::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Rows of 16-bit levels, one per channel, followed by zeros for the filling of the taps.
void split_channels(const std::uint8_t* rgb, std::int64_t width, std::int16_t* planes) {
  const hn::FixedTag<std::uint8_t, 16> u8;
  const hn::FixedTag<std::uint8_t, 8> half;
  const hn::FixedTag<std::int16_t, 8> i16;
  const std::int64_t stride = width + kRowPadding;
  std::int64_t x = 0;
  for (; x + 16 <= width; x += 16) {
    hn::Vec<decltype(u8)> channels[3];
    hn::LoadInterleaved3(u8, rgb + 3 * x, channels[0], channels[1], channels[2]);
    for (int c = 0; c < 3; ++c) {
      hn::StoreU(hn::PromoteTo(i16, hn::LowerHalf(half, channels[c])), i16, planes + c * stride + x);
      hn::StoreU(hn::PromoteTo(i16, hn::UpperHalf(half, channels[c])), i16, planes + c * stride + x + 8);
    }
  }
  for (; x < width; ++x)
    for (int c = 0; c < 3; ++c) planes[c * stride + x] = rgb[3 * x + c];
  for (int c = 0; c < 3; ++c) std::memset(planes + c * stride + width, 0, kRowPadding * sizeof(std::int16_t));
}

/// Sums of products of neighbours: on x86, lane i of the result gains a[2i] * b[2i] + a[2i + 1] * b[2i + 1]. Highway
/// leaves open which pair goes where; the tests of this file hold every instruction set to it.
template <typename D, typename V, typename VSum>
HWY_INLINE VSum multiply_pairs(D i32, V a, V b, VSum sum) {
  VSum unused = hn::Zero(i32);
  return hn::ReorderWidenMulAccumulate(i32, a, b, sum, unused);
}

/// One block of outputs that is a run: out [kBlock, 3]. Only sizes that fall to more than half have runs, with at most
/// 10 taps, so that the last vectors end within the rows' padding.
/// @param planes  from the first input that it reads
HWY_INLINE void resize_run(const std::int16_t* planes, std::int64_t stride, const ResizeTaps& taps,
                           const std::int16_t* block_taps, std::uint8_t* out) {
  const hn::FixedTag<std::int16_t, ResizeTaps::kBlock> i16;
  const hn::FixedTag<std::int32_t, ResizeTaps::kBlock / 2> i32;
  const hn::FixedTag<std::uint8_t, ResizeTaps::kBlock> u8;
  const auto rounding = hn::Set(i32, taps.fraction_bits > 0 ? 1 << (taps.fraction_bits - 1) : 0);
  hn::Vec<decltype(u8)> levels[3];
  for (int c = 0; c < 3; ++c) {
    const std::int16_t* from = planes + c * stride;
    auto lower = rounding, upper = rounding;
    for (std::int64_t pair = 0; pair < taps.num_pairs; ++pair) {
      const auto a = hn::LoadU(i16, from + 2 * pair), b = hn::LoadU(i16, from + 2 * pair + 1);
      const std::int16_t* factors = block_taps + pair * 2 * ResizeTaps::kBlock;
      lower = multiply_pairs(i32, hn::InterleaveLower(i16, a, b), hn::LoadU(i16, factors), lower);
      upper = multiply_pairs(i32, hn::InterleaveUpper(i16, a, b), hn::LoadU(i16, factors + ResizeTaps::kBlock), upper);
    }
    const auto packed = hn::ReorderDemote2To(i16, hn::ShiftRightSame(lower, taps.fraction_bits),
                                             hn::ShiftRightSame(upper, taps.fraction_bits));
    levels[c] = hn::DemoteTo(u8, packed);
  }
  hn::StoreInterleaved3(levels[0], levels[1], levels[2], u8, out);
}

void resize_row(const std::uint8_t* rgb, std::int64_t width_in, const ResizeTaps& taps, std::int16_t* planes,
                std::uint8_t* out) {
  const hn::FixedTag<std::int16_t, 8> i16;
  const hn::FixedTag<std::int32_t, 4> i32;
  const hn::FixedTag<std::int16_t, 4> half;
  const hn::FixedTag<std::uint8_t, 4> u8;
  split_channels(rgb, width_in, planes);
  const std::int64_t stride = width_in + kRowPadding;
  const auto outputs = static_cast<std::int64_t>(taps.first.size());
  const auto rounding = hn::Set(i32, taps.fraction_bits > 0 ? 1 << (taps.fraction_bits - 1) : 0);
  const std::int64_t in_blocks = std::ssize(taps.is_run) * ResizeTaps::kBlock;
  for (std::int64_t o = 0; o < outputs; ++o) {
    const std::int16_t* red = planes + taps.first[static_cast<std::size_t>(o)];
    if (o % ResizeTaps::kBlock == 0 && o < in_blocks && taps.is_run[static_cast<std::size_t>(o / ResizeTaps::kBlock)]) {
      resize_run(red, stride, taps, taps.block_taps.data() + o * 2 * taps.num_pairs, out + 3 * o);
      o += ResizeTaps::kBlock - 1;
      continue;
    }
    const std::int16_t* factors = taps.of(o);
    const std::int64_t count = taps.count[static_cast<std::size_t>(o)];
    auto r = hn::Zero(i32), g = hn::Zero(i32), b = hn::Zero(i32);
    for (std::int64_t k = 0; k < count; k += 8) {
      const auto factor = hn::LoadU(i16, factors + k);
      r = multiply_pairs(i32, hn::LoadU(i16, red + k), factor, r);
      g = multiply_pairs(i32, hn::LoadU(i16, red + stride + k), factor, g);
      b = multiply_pairs(i32, hn::LoadU(i16, red + 2 * stride + k), factor, b);
    }
    // Four partial sums each -> one vector (red, green, blue, 0).
    const auto none = hn::Zero(i32);
    const auto rb = hn::Add(hn::InterleaveLower(i32, r, b), hn::InterleaveUpper(i32, r, b));
    const auto g0 = hn::Add(hn::InterleaveLower(i32, g, none), hn::InterleaveUpper(i32, g, none));
    auto sums = hn::Add(hn::InterleaveLower(i32, rb, g0), hn::InterleaveUpper(i32, rb, g0));
    sums = hn::ShiftRightSame(hn::Add(sums, rounding), taps.fraction_bits);
    hn::StoreU(hn::DemoteTo(u8, hn::DemoteTo(half, sums)), u8, out + 3 * o);  // the fourth byte is written over
  }
}

void resize_column(const std::uint8_t* const* rows, const std::int16_t* taps, std::int64_t count, int fraction_bits,
                   std::int64_t num_bytes, std::uint8_t* out) {
  const hn::ScalableTag<std::int16_t> i16;
  const hn::Repartition<std::int32_t, decltype(i16)> i32;
  const hn::Rebind<std::uint8_t, decltype(i16)> u8;
  const auto step = static_cast<std::int64_t>(hn::Lanes(i16));
  const auto rounding = hn::Set(i32, fraction_bits > 0 ? 1 << (fraction_bits - 1) : 0);
  const auto none = hn::Zero(i16);

  // Interleaving, multiplying and packing work inside 128-bit blocks alike, so the bytes come out in their order.
  const auto write = [&](std::int64_t i) HWY_ATTR {
    auto lower = rounding, upper = rounding;
    for (std::int64_t k = 0; k < count; k += 2) {
      const bool is_last = k + 1 == count;
      const auto a = hn::PromoteTo(i16, hn::LoadU(u8, rows[k] + i));
      const auto b = is_last ? none : hn::PromoteTo(i16, hn::LoadU(u8, rows[k + 1] + i));
      const auto factors =
          hn::InterleaveLower(i16, hn::Set(i16, taps[k]), hn::Set(i16, is_last ? std::int16_t{0} : taps[k + 1]));
      lower = multiply_pairs(i32, hn::InterleaveLower(i16, a, b), factors, lower);
      upper = multiply_pairs(i32, hn::InterleaveUpper(i16, a, b), factors, upper);
    }
    const auto packed =
        hn::ReorderDemote2To(i16, hn::ShiftRightSame(lower, fraction_bits), hn::ShiftRightSame(upper, fraction_bits));
    hn::StoreU(hn::DemoteTo(u8, packed), u8, out + i);
  };
  std::int64_t i = 0;
  for (; i + step <= num_bytes; i += step) write(i);
  // The end is computed once more with a vector that stops there; a row that is shorter than one goes byte by byte.
  if (i < num_bytes && num_bytes >= step) return write(num_bytes - step);
  for (; i < num_bytes; ++i) {
    std::int32_t sum = fraction_bits > 0 ? 1 << (fraction_bits - 1) : 0;
    for (std::int64_t k = 0; k < count; ++k) sum += rows[k][i] * taps[k];
    out[i] = static_cast<std::uint8_t>(std::clamp(sum >> fraction_bits, 0, 255));
  }
}

void write_patch_row(const std::uint8_t* rgb, std::int64_t num_patches, const PatchStrides& strides,
                     std::uint8_t* out) {
  const hn::FixedTag<std::uint8_t, 16> u8;
  for (std::int64_t patch = 0; patch < num_patches; ++patch) {
    hn::Vec<decltype(u8)> channels[3];
    hn::LoadInterleaved3(u8, rgb + 48 * patch, channels[0], channels[1], channels[2]);
    for (int c = 0; c < 3; ++c) hn::StoreU(channels[c], u8, out + c * strides.channel);
    out += patch % 2 == 0 ? strides.from_even : strides.from_odd;
  }
}

}  // namespace treble::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treble {

HWY_EXPORT(resize_row);
HWY_EXPORT(resize_column);
HWY_EXPORT(write_patch_row);

void resize_row(const std::uint8_t* rgb, std::int64_t width_in, const ResizeTaps& taps, std::int16_t* planes,
                std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(resize_row)(rgb, width_in, taps, planes, out);
}

void resize_column(const std::uint8_t* const* rows, const std::int16_t* taps, std::int64_t count, int fraction_bits,
                   std::int64_t num_bytes, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(resize_column)(rows, taps, count, fraction_bits, num_bytes, out);
}

void write_patch_row(const std::uint8_t* rgb, std::int64_t num_patches, const PatchStrides& strides,
                     std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(write_patch_row)(rgb, num_patches, strides, out);
}

}  // namespace treble
#endif
