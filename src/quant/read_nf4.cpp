#include "quant/read_nf4.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/parallel.h"

namespace treble {
namespace {

constexpr std::string_view kState = "weight.quant_state.bitsandbytes__nf4";

/// Reads the fields of the quant_state.
class State {
 public:
  State(const ModuleTensors& tensors, Json json) : tensors_(tensors), json_(std::move(json)) {}

  bool has(std::string_view key) const { return json_.find(key) != nullptr; }

  void expect(std::string_view key, std::string_view wanted) const {
    if (text(key) != wanted)
      tensors_.fail(fmt::format("has the {} {}, expected {}", key, dump_json(*json_.find(key)), wanted));
  }

  const std::string& text(std::string_view key) const {
    const Json& value = member(key);
    if (!value.is_string()) wrong(key, value);
    return value.as_string();
  }

  /// A power of two from 16 to 2^16, as every block size is.
  std::int64_t block_size(std::string_view key) const {
    const Json& value = member(key);
    long long size = 0;
    if (!value.is_number() || !value.as_int64(size)) wrong(key, value);
    if (size < 16 || size > 65536 || !std::has_single_bit(static_cast<unsigned long long>(size))) wrong(key, value);
    return size;
  }

  float number(std::string_view key) const {
    const Json& value = member(key);
    if (!value.is_number() || !std::isfinite(static_cast<float>(value.as_double()))) wrong(key, value);
    return static_cast<float>(value.as_double());
  }

  DType dtype() const {
    const std::string& name = text("dtype");
    if (name == "bfloat16") return DType::kBF16;
    if (name == "float16") return DType::kF16;
    if (name == "float32") return DType::kF32;
    tensors_.fail(fmt::format("has weights of dtype {}, expected bfloat16, float16 or float32", dump_json(Json(name))));
  }

  void read_shape(Nf4& nf4) const {
    const Json& value = member("shape");
    constexpr long long kMost = 1LL << 30;
    long long sizes[2] = {};
    if (!value.is_array() || value.as_array().size() != 2) wrong("shape", value);
    for (std::size_t i = 0; i < 2; ++i) {
      const Json& size = value.as_array()[i];
      if (!size.is_number() || !size.as_int64(sizes[i]) || sizes[i] < 1 || sizes[i] > kMost) wrong("shape", value);
    }
    nf4.out_features = sizes[0];
    nf4.in_features = sizes[1];
  }

 private:
  const Json& member(std::string_view key) const {
    const Json* value = json_.find(key);
    if (!value) tensors_.fail(fmt::format("has a quant_state without {}; the file is damaged", key));
    return *value;
  }
  [[noreturn]] void wrong(std::string_view key, const Json& value) const {
    tensors_.fail(
        fmt::format("has a quant_state whose {} is {}; the file is damaged", key, dump_json(value).substr(0, 60)));
  }

  const ModuleTensors& tensors_;
  Json json_;
};

/// Codes may be stored as any type: it is the bytes that count.
TensorView read_codes(ModuleTensors& tensors, const Nf4& nf4) {
  const TensorView stored = tensors.take("weight");
  const std::int64_t needed = num_blocks_of(nf4.out_features * nf4.in_features, 2);
  const auto unit = static_cast<std::int64_t>(size_of(stored.dtype()));
  if (static_cast<std::int64_t>(stored.num_bytes()) != num_blocks_of(needed, unit) * unit)
    tensors.fail(fmt::format("has {} bytes of codes, [{}, {}] needs {}", stored.num_bytes(), nf4.out_features,
                             nf4.in_features, needed));
  return TensorView(stored.data(), DType::kU8, {needed});
}

void check_not_negative(const ModuleTensors& tensors, std::string_view name, const TensorView& scales) {
  for (std::int64_t i = 0; i < scales.num_elements(); ++i)
    if (scales.as<float>()[i] < 0)
      tensors.fail(fmt::format("has {} in its {} at {}; a scale is not negative", scales.as<float>()[i], name, i));
}

/// Scales that are quantised themselves.
void read_nested(ModuleTensors& tensors, const State& state, std::int64_t num_blocks, Nf4& nf4) {
  nf4.nested_block_size = state.block_size("nested_blocksize");
  nf4.nested_offset = state.number("nested_offset");
  if (state.has("nested_dtype")) state.expect("nested_dtype", "float32");
  if (nf4.absmax.dtype() != DType::kU8 || nf4.absmax.num_elements() != num_blocks)
    tensors.fail(fmt::format("has a weight.absmax of {}, expected {} u8", nf4.absmax.describe(), num_blocks));
  nf4.absmax = nf4.absmax.reshape({num_blocks});
  nf4.nested_values = tensors.floats("weight.nested_quant_map", tensors.take("weight.nested_quant_map"), 256);
  nf4.nested_absmax = tensors.floats("weight.nested_absmax", tensors.take("weight.nested_absmax"),
                                     num_blocks_of(num_blocks, nf4.nested_block_size));
}

/// That a map of scales is one: values from -1 to 1 in ascending order.
void check_nested_values(const ModuleTensors& tensors, const float* values) {
  for (int code = 0; code < 256; ++code) {
    const bool is_in_order = code == 0 || values[code - 1] <= values[code];
    if (std::abs(values[code]) > 1 || !is_in_order)
      tensors.fail(
          fmt::format("has {} in its weight.nested_quant_map at {}, expected values from -1 to 1 in ascending order",
                      values[code], code));
  }
}

/// A scale is not negative before it is quantised, so afterwards it is below 0 by no more than the rounding to the
/// map's nearest value, for which a whole gap between two values is enough. More is the mean or the map of other
/// scales.
void check_nested_scales(const ModuleTensors& tensors, const Nf4& nf4) {
  const float* values = nf4.nested_values.as<float>();
  float widest_gap = 0;
  for (int code = 1; code < 256; ++code) widest_gap = std::max(widest_gap, values[code] - values[code - 1]);
  const std::int64_t num_blocks = nf4.absmax.num_elements();
  const auto* codes = nf4.absmax.as<std::uint8_t>();
  constexpr std::int64_t kNestedBlocksPerTask = 256;
  parallel_ranges(nf4.nested_absmax.num_elements(), kNestedBlocksPerTask, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t nested_block = first; nested_block < last; ++nested_block) {
      const std::int64_t begin = nested_block * nf4.nested_block_size;
      const std::int64_t end = std::min(num_blocks, begin + nf4.nested_block_size);
      std::uint8_t least = 255;  // the map ascends: the least code is the least scale
      for (std::int64_t block = begin; block < end; ++block) least = std::min(least, codes[block]);
      const float nested_absmax = nf4.nested_absmax.as<float>()[nested_block];
      const float scale = values[least] * nested_absmax + nf4.nested_offset;
      if (scale < -widest_gap * nested_absmax)
        tensors.fail(
            fmt::format("has a scale of {} among its blocks {} to {}: nested_offset {} does not belong to its "
                        "weight.absmax; the file is damaged",
                        scale, begin, end - 1, nf4.nested_offset));
    }
  });
}

void check_values(const ModuleTensors& tensors, const Nf4& nf4) {
  for (int code = 0; code < 16; ++code)
    if (const float value = nf4.code_values.as<float>()[code];
        std::abs(value - kNf4Values[static_cast<std::size_t>(code)]) > 1e-6f)
      tensors.fail(fmt::format("has {} in its weight.quant_map at {}, NF4 has {}", value, code,
                               kNf4Values[static_cast<std::size_t>(code)]));
  if (!nf4.nested_values) return check_not_negative(tensors, "weight.absmax", nf4.absmax);
  check_not_negative(tensors, "weight.nested_absmax", nf4.nested_absmax);
  check_nested_values(tensors, nf4.nested_values.as<float>());
  check_nested_scales(tensors, nf4);
}

}  // namespace

LinearWeight read_nf4(ModuleTensors& tensors) {
  const State state(tensors, tensors.json(kState, tensors.take(kState)));
  state.expect("quant_type", "nf4");

  LinearWeight linear;
  linear.format = WeightFormat::kNf4;
  Nf4& nf4 = linear.nf4;
  state.read_shape(nf4);
  nf4.dtype = state.dtype();
  nf4.block_size = state.block_size("blocksize");
  linear.weight = read_codes(tensors, nf4);

  nf4.code_values = tensors.floats("weight.quant_map", tensors.take("weight.quant_map"), 16);
  const std::int64_t num_blocks = num_blocks_of(nf4.out_features * nf4.in_features, nf4.block_size);
  nf4.absmax = tensors.take("weight.absmax");
  if (state.has("nested_blocksize")) {
    read_nested(tensors, state, num_blocks, nf4);
  } else {
    nf4.absmax = tensors.floats("weight.absmax", nf4.absmax, num_blocks);
  }
  linear.bias = tensors.bias("bias", tensors.take_if("bias"), nf4.out_features);
  tensors.check_all_taken();
  if (tensors.reads_values()) check_values(tensors, nf4);
  return linear;
}

}  // namespace treble
