#include "quant/encode_nf4.h"

#include <fmt/format.h>
#include <treble/error.h>
#include <treble/json.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "quant/allocate.h"
#include "tensor/element.h"

namespace treble {
namespace {

constexpr std::int64_t kNestedBlockSize = 256;
constexpr float kLeastAbsmax = 1e-38f;  // so that a block of zeros has a finite reciprocal

/// Half-way between neighbours of a sorted table.
template <std::size_t kSize>
std::array<float, kSize - 1> midpoints(const std::array<float, kSize>& values) {
  std::array<float, kSize - 1> out;
  for (std::size_t i = 0; i + 1 < kSize; ++i) out[i] = (values[i] + values[i + 1]) / 2;
  return out;
}

/// Brings a block into [-1, 1] in place. Returns the scale that is stored for it.
float normalise_block(float* values, std::int64_t count, std::int64_t block_size) {
  float absmax = 0;
  for (std::int64_t i = 0; i < count; ++i) absmax = std::max(absmax, std::abs(values[i]));
  const float divisor = std::max(absmax, kLeastAbsmax);
  if (count < block_size) {
    for (std::int64_t i = 0; i < count; ++i) values[i] = std::clamp(values[i] / divisor, -1.0f, 1.0f);
    return divisor;
  }
  const float factor = 1 / divisor;
  for (std::int64_t i = 0; i < count; ++i) values[i] = std::clamp(values[i] * factor, -1.0f, 1.0f);
  return absmax;
}

/// Codes of a block's values in [-1, 1], which begin at an even element.
void encode_block(const float* values, std::int64_t count, std::uint8_t* bytes) {
  static const std::array<float, 15> kMidpoints = midpoints(kNf4Values);
  const auto code = [](float value) {
    int above = 0;
    for (const float midpoint : kMidpoints) above += value > midpoint;
    return above;
  };
  constexpr int kZero = 7;  // pads an odd number
  for (std::int64_t i = 0; i < count; i += 2)
    bytes[i / 2] = static_cast<std::uint8_t>(code(values[i]) << 4 | (i + 1 < count ? code(values[i + 1]) : kZero));
}

/// The 256 values of an 8-bit scale, sorted: for i = 0 to 6 the middles of 2^i equal parts of [0.1, 1] times 10^(i - 6)
/// with both signs, 0 and 1. Borders are computed from both ends with one rounding each, as the library's are.
std::array<float, 256> dynamic_map() {
  std::array<float, 256> out;
  auto* at = out.begin();
  for (int i = 0; i < 7; ++i) {
    const int parts = 1 << i;
    const float step = (1 - 0.1f) / static_cast<float>(parts);
    const auto power = static_cast<float>(std::pow(10.0, i - 6));
    const auto border = [&](int j) {
      return j < (parts + 1) / 2 ? std::fma(step, static_cast<float>(j), 0.1f)
                                 : std::fma(-step, static_cast<float>(parts - j), 1.0f);
    };
    for (int j = 0; j < parts; ++j) {
      const float value = (border(j) + border(j + 1)) / 2 * power;
      *at++ = value;
      *at++ = -value;
    }
  }
  *at++ = 0;
  *at++ = 1;
  std::sort(out.begin(), out.end());
  return out;
}

/// Replaces the fp32 scales by 8-bit ones.
void encode_scales(Nf4& nf4, std::vector<std::shared_ptr<const void>>& storage) {
  const std::int64_t count = nf4.absmax.num_elements();
  float* scales = nf4.absmax.as<float>();
  double sum = 0;
  for (std::int64_t b = 0; b < count; ++b) sum += static_cast<double>(scales[b]);
  nf4.nested_offset = static_cast<float>(sum / static_cast<double>(count));
  for (std::int64_t b = 0; b < count; ++b) scales[b] -= nf4.nested_offset;

  const std::array<float, 256> map = dynamic_map();
  const std::array<float, 255> between = midpoints(map);
  nf4.nested_block_size = kNestedBlockSize;
  nf4.nested_values = allocate_kept(DType::kF32, {256}, storage);
  std::ranges::copy(map, nf4.nested_values.as<float>());
  nf4.nested_absmax = allocate_kept(DType::kF32, {num_blocks_of(count, kNestedBlockSize)}, storage);
  const TensorView codes = allocate_kept(DType::kU8, {count}, storage);
  for (std::int64_t begin = 0; begin < count; begin += kNestedBlockSize) {
    const std::int64_t size = std::min(kNestedBlockSize, count - begin);
    nf4.nested_absmax.as<float>()[begin / kNestedBlockSize] = normalise_block(scales + begin, size, kNestedBlockSize);
    for (std::int64_t b = begin; b < begin + size; ++b)
      codes.as<std::uint8_t>()[b] =
          static_cast<std::uint8_t>(std::ranges::lower_bound(between, scales[b]) - between.begin());
  }
  nf4.absmax = codes;
}

}  // namespace

bool is_nf4_block_size(std::int64_t block_size) {
  return block_size >= 32 && block_size <= 4096 && std::has_single_bit(static_cast<std::uint64_t>(block_size));
}

EncodedLinear encode_nf4(const TensorView& weight, const Nf4Encoding& encoding, std::string_view where) {
  if (!is_nf4_block_size(encoding.block_size))
    throw Error(ErrorCode::kArgument,
                fmt::format("{} cannot have blocks of {}, expected a power of two from 32 to 4096", where,
                            encoding.block_size));
  const std::int64_t count = weight.num_elements(), block_size = encoding.block_size;
  const std::int64_t num_blocks = num_blocks_of(count, block_size);
  EncodedLinear out;
  out.linear.format = WeightFormat::kNf4;
  out.linear.weight = allocate_kept(DType::kU8, {num_blocks_of(count, 2)}, out.storage);
  Nf4& nf4 = out.linear.nf4;
  nf4.out_features = weight.size(0);
  nf4.in_features = weight.size(1);
  nf4.block_size = block_size;
  nf4.dtype = weight.dtype() == DType::kF64 ? DType::kF32 : weight.dtype();
  nf4.code_values = allocate_kept(DType::kF32, {16}, out.storage);
  std::ranges::copy(kNf4Values, nf4.code_values.as<float>());
  nf4.absmax = allocate_kept(DType::kF32, {num_blocks}, out.storage);

  constexpr std::int64_t kBlocksPerTask = 256;
  parallel_ranges(num_blocks, kBlocksPerTask, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> values(static_cast<std::size_t>(block_size));
    for (std::int64_t b = begin; b < end; ++b) {
      const std::int64_t first = b * block_size, size = std::min(block_size, count - first);
      widen(weight, first, size, values.data());
      for (std::int64_t i = 0; i < size; ++i)
        if (const float w = values[static_cast<std::size_t>(i)]; !std::isfinite(w))
          throw Error(ErrorCode::kCheckpoint,
                      fmt::format("{} has {} at [{}, {}]; the file is damaged", where, w, (first + i) / nf4.in_features,
                                  (first + i) % nf4.in_features));
      nf4.absmax.as<float>()[b] = normalise_block(values.data(), size, block_size);
      encode_block(values.data(), size, out.linear.weight.as<std::uint8_t>() + first / 2);
    }
  });
  if (encoding.is_double) encode_scales(nf4, out.storage);
  return out;
}

std::string nf4_quant_state(const Nf4& nf4) {
  const char* dtype = nf4.dtype == DType::kBF16 ? "bfloat16" : nf4.dtype == DType::kF16 ? "float16" : "float32";
  std::string nested;
  if (nf4.nested_values)
    nested = fmt::format(R"(, "nested_blocksize": {}, "nested_dtype": "float32", "nested_offset": {})",
                         nf4.nested_block_size, Json::real(static_cast<double>(nf4.nested_offset)).number_text());
  return fmt::format(R"({{"quant_type": "nf4", "blocksize": {}, "dtype": "{}", "shape": [{}, {}]{}}})", nf4.block_size,
                     dtype, nf4.out_features, nf4.in_features, nested);
}

}  // namespace treble
