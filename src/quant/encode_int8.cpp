#include "quant/encode_int8.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/parallel.h"
#include "quant/allocate.h"
#include "quant/rotation.h"
#include "tensor/element.h"

namespace treble {
namespace {

bool are_finite(const std::vector<float>& row) {
  return std::all_of(row.begin(), row.end(), [](float w) { return std::isfinite(w); });
}

/// Quantises one row, which is left rotated. Returns its scale; NaN if the row is not finite then.
float encode_row(std::vector<float>& row, std::int64_t rotation_group, std::int8_t* codes) {
  rotate(row.data(), static_cast<std::int64_t>(row.size()), rotation_group);
  if (!are_finite(row)) return std::numeric_limits<float>::quiet_NaN();
  float largest = 0;
  for (const float w : row) largest = std::max(largest, std::abs(w));
  constexpr float kLeast = 1e-30f;
  const float scale = std::max(largest / 127, kLeast);
  // A quotient is at most 127 and half a unit in its last place: it needs no clamp.
  for (std::size_t i = 0; i < row.size(); ++i) codes[i] = static_cast<std::int8_t>(std::nearbyint(row[i] / scale));
  return scale;
}

/// Says why the row cannot be quantised.
[[noreturn]] void fail_at_row(const TensorView& weight, std::int64_t row, std::string_view where) {
  for (std::int64_t i = 0; i < weight.size(1); ++i)
    if (const float w = element(weight, row * weight.size(1) + i); !std::isfinite(w))
      throw Error(ErrorCode::kCheckpoint, fmt::format("{} has {} at [{}, {}]; the file is damaged", where, w, row, i));
  throw Error(ErrorCode::kCheckpoint,
              fmt::format("{} has numbers in row {} that are too large to rotate; keep it as it is", where, row));
}

}  // namespace

EncodedLinear encode_int8(const TensorView& weight, std::int64_t rotation_group, std::string_view where) {
  const std::int64_t out_features = weight.size(0), in_features = weight.size(1);
  if (rotation_group != 1 && !is_rotation_group(rotation_group, in_features))
    throw Error(
        ErrorCode::kCheckpoint,
        fmt::format("{} cannot be rotated in groups of {}, expected a power of four from 4 to 4096 that divides "
                    "its {} inputs; choose another group size or keep it as it is",
                    where, rotation_group, in_features));
  EncodedLinear out;
  out.linear.format = WeightFormat::kInt8;
  out.linear.weight = allocate_kept(DType::kI8, {out_features, in_features}, out.storage);
  out.linear.int8.row_scale = allocate_kept(DType::kF32, {out_features}, out.storage);
  out.linear.int8.rotation_group = rotation_group;

  constexpr std::int64_t kRowsPerTask = 16;
  parallel_ranges(out_features, kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> row(static_cast<std::size_t>(in_features));
    for (std::int64_t o = begin; o < end; ++o) {
      widen(weight, o * in_features, in_features, row.data());
      const float scale = encode_row(row, rotation_group, out.linear.weight.as<std::int8_t>() + o * in_features);
      if (!std::isfinite(scale)) fail_at_row(weight, o, where);
      out.linear.int8.row_scale.as<float>()[o] = scale;
    }
  });
  return out;
}

}  // namespace treble
