#include "cpu/int8_blocks.h"

#include "cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/int8_blocks.cpp"
#include <hwy/foreach_target.h>  // keep in this order
#include <hwy/highway.h>

#include <algorithm>

#include "cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treble::cpu::HWY_NAMESPACE {

using FourU32 = hn::FixedTag<std::uint32_t, 4>;

/// Four rows of four 32-bit numbers become columns; `flip` is added to each without carry. Rows need no alignment.
HWY_INLINE void transpose_four_by_four(const std::uint32_t* const (&rows)[4], hn::Vec<FourU32> flip, std::uint32_t* to,
                                       std::int64_t to_stride) {
  const FourU32 four;
  const auto a = hn::LoadU(four, rows[0]), b = hn::LoadU(four, rows[1]);
  const auto c = hn::LoadU(four, rows[2]), d = hn::LoadU(four, rows[3]);
  const auto ac_low = hn::InterleaveLower(four, a, c), ac_high = hn::InterleaveUpper(four, a, c);
  const auto bd_low = hn::InterleaveLower(four, b, d), bd_high = hn::InterleaveUpper(four, b, d);
  hn::StoreU(hn::Xor(hn::InterleaveLower(four, ac_low, bd_low), flip), four, to);
  hn::StoreU(hn::Xor(hn::InterleaveUpper(four, ac_low, bd_low), flip), four, to + to_stride);
  hn::StoreU(hn::Xor(hn::InterleaveLower(four, ac_high, bd_high), flip), four, to + 2 * to_stride);
  hn::StoreU(hn::Xor(hn::InterleaveUpper(four, ac_high, bd_high), flip), four, to + 3 * to_stride);
}

/// Past the last row it repeats that one: nobody reads those sums.
void pack_panel(const std::int8_t* codes, std::int64_t stride, std::int64_t num_rows, std::int64_t in_features,
                std::uint32_t flip, std::int8_t* packed) {
  constexpr std::int64_t kPanelTokens = 16, kFourQuads = 16;
  const auto flips = hn::Set(FourU32(), flip);
  const auto row = [&](std::int64_t t, std::int64_t k) {
    return reinterpret_cast<const std::uint32_t*>(codes + std::min(t, num_rows - 1) * stride + k);
  };
  for (std::int64_t k = 0; k < in_features; k += kFourQuads) {
    for (std::int64_t t = 0; t < kPanelTokens; t += 4) {
      const std::uint32_t* const rows[4] = {row(t, k), row(t + 1, k), row(t + 2, k), row(t + 3, k)};
      transpose_four_by_four(rows, flips, reinterpret_cast<std::uint32_t*>(packed + k * kPanelTokens) + t,
                             kPanelTokens);
    }
  }
}

/// to[t, o] = block[first_output + o, t] for the block's outputs from that one on and for tokens [0, num_tokens).
void store_block(const std::int32_t* block, std::int64_t first_output, std::int64_t num_tokens, std::int64_t to_stride,
                 std::int32_t* to) {
  constexpr std::int64_t kOutputs = kInt8BlockOutputs, kTokens = kInt8BlockTokens;
  const auto none = hn::Zero(FourU32());
  const std::int64_t num_whole = first_output % 4 == 0 ? num_tokens / 4 * 4 : 0;
  for (std::int64_t t = 0; t < num_whole; t += 4) {
    for (std::int64_t o = first_output; o < kOutputs; o += 4) {
      const auto* from = reinterpret_cast<const std::uint32_t*>(block) + o * kTokens + t;
      const std::uint32_t* const rows[4] = {from, from + kTokens, from + 2 * kTokens, from + 3 * kTokens};
      transpose_four_by_four(rows, none, reinterpret_cast<std::uint32_t*>(to) + t * to_stride + o - first_output,
                             to_stride);
    }
  }
  for (std::int64_t t = num_whole; t < num_tokens; ++t)
    for (std::int64_t o = first_output; o < kOutputs; ++o)
      to[t * to_stride + o - first_output] = block[o * kTokens + t];
}

}  // namespace treble::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include "cpu/int8_block_kernels.h"

namespace treble::cpu {

HWY_EXPORT(pack_panel);
HWY_EXPORT(store_block);

namespace {

constexpr std::int64_t kPanelTokens = kInt8BlockTokens / 2;

Int8BlockKernel kernel_of(Int8Blocks blocks) {
  switch (blocks) {
    case Int8Blocks::kVnni:
      return {multiply_block_vnni, offset_sums_vnni};
    case Int8Blocks::kAmx:
      return {multiply_block_amx, nullptr};
    default:
      return {multiply_block_portable, offset_sums_portable};
  }
}

/// Holds the calling thread's AMX tiles, if they are needed.
class Tiles {
 public:
  explicit Tiles(Int8Blocks blocks) : is_amx_(blocks == Int8Blocks::kAmx) {
    if (is_amx_) configure_amx_tiles();
  }
  ~Tiles() {
    if (is_amx_) release_amx_tiles();
  }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;

 private:
  const bool is_amx_;
};

}  // namespace

std::string_view to_string(Int8Blocks blocks) {
  switch (blocks) {
    case Int8Blocks::kPortable:
      return "portable";
    case Int8Blocks::kVnni:
      return "VNNI";
    case Int8Blocks::kAmx:
      return "AMX";
    default:
      return "none";
  }
}

bool is_supported(Int8Blocks blocks) {
  if (blocks == Int8Blocks::kVnni) return has_vnni();
  if (blocks == Int8Blocks::kAmx) return has_amx();
  return true;
}

Int8Blocks best_int8_blocks() {
  if (has_amx()) return Int8Blocks::kAmx;
  return has_vnni() ? Int8Blocks::kVnni : Int8Blocks::kNone;
}

void pack_codes(Int8Blocks blocks, const TensorView& codes, std::int64_t begin, std::int64_t end, std::int8_t* packed) {
  const std::int64_t in_features = codes.size(1), stride = codes.stride(0);
  const std::uint32_t flip = kernel_of(blocks).offset_sums ? 0x80808080u : 0;  // adds 128 to a code
  const std::int64_t padded_end = begin + packed_codes_size(end - begin, 1);
  for (std::int64_t t = begin; t < padded_end; t += kPanelTokens) {
    const std::int64_t first = std::min(t, end - 1);  // a panel without tokens repeats the last one too
    HWY_DYNAMIC_DISPATCH(pack_panel)
    (codes.as<std::int8_t>() + first * stride, stride, end - first, in_features, flip, packed + t * in_features);
  }
}

void multiply_codes(Int8Blocks blocks, const std::int8_t* packed, const LinearWeight& weight, std::int64_t first,
                    const TensorView& sums) {
  const std::int64_t num_tokens = sums.size(0), num_outputs = sums.size(1), in_features = weight.in_features();
  const std::int64_t stride = weight.weight.stride(0);
  const Int8BlockKernel kernel = kernel_of(blocks);
  const Tiles tiles(blocks);
  alignas(64) std::int32_t block[kInt8BlockOutputs * kInt8BlockTokens];
  std::int32_t offset_sums[kInt8BlockOutputs];
  for (std::int64_t o = 0; o < num_outputs; o += kInt8BlockOutputs) {
    // The last block of a weight starts earlier, among rows that are done: a block has no missing rows.
    const std::int64_t row = std::min(first + o, weight.out_features() - kInt8BlockOutputs), skipped = first + o - row;
    const std::int8_t* rows = weight.weight.as<std::int8_t>() + row * stride;
    if (kernel.offset_sums) kernel.offset_sums(rows, stride, in_features, offset_sums);
    for (std::int64_t t = 0; t < num_tokens; t += kInt8BlockTokens) {
      kernel.multiply(rows, stride, packed + t * in_features, in_features, offset_sums, block);
      HWY_DYNAMIC_DISPATCH(store_block)
      (block, skipped, std::min(kInt8BlockTokens, num_tokens - t), sums.stride(0),
       sums.as<std::int32_t>() + t * sums.stride(0) + o);
    }
  }
}

}  // namespace treble::cpu
#endif
