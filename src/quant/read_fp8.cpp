#include "quant/read_fp8.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cmath>
#include <limits>

#include "base/parallel.h"

namespace treble {
namespace {

constexpr std::int64_t kBlock = 128;  // rows and inputs that share a scale, where there is no scale a row

/// Values of all codes: sign, 4 bits of exponent (bias 7), 3 of mantissa; all ones is NaN.
std::array<float, 256> code_values() {
  std::array<float, 256> out{};
  for (int code = 0; code < 256; ++code) {
    const int exponent = code >> 3 & 15, mantissa = code & 7;
    float value = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
    if ((code & 127) == 127) value = std::numeric_limits<float>::quiet_NaN();
    out[static_cast<std::size_t>(code)] = code < 128 ? value : -value;
  }
  return out;
}

/// Scales by row and input.
struct Scales {
  TensorView values;
  std::int64_t rows_per_scale, inputs_per_scale, per_row;  // per_row: scales side by side

  float at(std::int64_t row, std::int64_t input) const {
    return values.as<float>()[row / rows_per_scale * per_row + input / inputs_per_scale];
  }
};

Scales read_scales(ModuleTensors& tensors, std::int64_t out_features, std::int64_t in_features) {
  const TensorView stored = tensors.take_one_of({"weight_scale", "weight_scale_inv", "scale_weight"});
  if (!stored) tensors.fail("has fp8 codes and no weight_scale; is the download complete?");
  const std::int64_t count = stored.num_elements();
  const std::int64_t block_rows = (out_features + kBlock - 1) / kBlock, per_row = (in_features + kBlock - 1) / kBlock;
  Scales out{{}, kBlock, kBlock, per_row};
  const bool is_blocks = stored.rank() == 2 && stored.size(0) == block_rows && stored.size(1) == per_row;
  const bool is_rows = count == out_features && stored.rank() >= 1 && stored.size(0) == out_features;
  if (count == 1) {
    out = {{}, out_features, in_features, 1};
  } else if (is_rows) {
    out = {{}, 1, in_features, 1};
  } else if (!is_blocks) {
    tensors.fail(fmt::format("has a weight_scale of {}, expected one, one for each of {} rows, or [{}, {}]",
                             stored.describe(), out_features, block_rows, per_row));
  }
  out.values = tensors.positive_floats("weight_scale", stored, count);
  return out;
}

}  // namespace

LinearWeight read_fp8(ModuleTensors& tensors) {
  const TensorView codes = tensors.take("weight");
  if (codes.dtype() != DType::kF8E4M3 || codes.rank() != 2)
    tensors.fail(fmt::format("has a weight of {}, expected [out_features, in_features] f8_e4m3", codes.describe()));
  const std::int64_t out_features = codes.size(0), in_features = codes.size(1);
  const Scales scales = read_scales(tensors, out_features, in_features);

  LinearWeight linear;
  linear.bias = tensors.bias("bias", tensors.take_if("bias"), out_features);
  tensors.take_one_of({"input_scale", "scale_input"});
  tensors.check_all_taken();
  if (!tensors.reads_values()) {
    linear.weight = TensorView(nullptr, DType::kBF16, {out_features, in_features});
    return linear;
  }
  linear.weight = tensors.allocate(DType::kBF16, {out_features, in_features});
  const std::array<float, 256> values = code_values();
  std::atomic<bool> has_nan = false;
  constexpr std::int64_t kRowsPerTask = 16;
  parallel_ranges(out_features, kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const auto* from = static_cast<const std::uint8_t*>(codes.data()) + row * in_features;
      bfloat16* to = linear.weight.as<bfloat16>() + row * in_features;
      for (std::int64_t i = 0; i < in_features; ++i) {
        if ((from[i] & 127) == 127) has_nan = true;
        to[i] = to_bfloat16(values[from[i]] * scales.at(row, i));
      }
    }
  });
  if (has_nan) tensors.fail("has a weight that is not a number; the file is damaged");
  return linear;
}

}  // namespace treble
