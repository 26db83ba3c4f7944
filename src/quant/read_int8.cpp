#include "quant/read_int8.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/parallel.h"
#include "quant/rotation.h"
#include "tensor/element.h"

namespace treble {
namespace {

/// A field of a module's description, which older writers put under "params".
const Json* field(const Json& config, std::string_view key) {
  if (const Json* value = config.find(key)) return value;
  const Json* params = config.find("params");
  return params ? params->find(key) : nullptr;
}

bool flag(const ModuleTensors& tensors, const Json& config, std::string_view key) {
  const Json* value = field(config, key);
  if (!value || value->is_null()) return false;
  if (!value->is_bool()) tensors.fail(fmt::format("has a {} that is {}, expected a boolean", key, value->type_name()));
  return value->as_bool();
}

/// A description may say more than is read here: who made it, what was calibrated. But not what other codes mean, and
/// it has to say something of the rotation.
void check_members(const ModuleTensors& tensors, const Json& config) {
  constexpr std::string_view kOtherArithmetic[] = {"zero_point",  "zero_points", "asymmetric",   "svd_rank",
                                                   "group_scale", "block_size",  "use_hadamard", "hadamard_group_size",
                                                   "permutation", "act_order"};
  const Json* params = config.find("params");
  for (const Json* object : {&config, params}) {
    if (!object) continue;
    if (!object->is_object())
      tensors.fail(fmt::format("has a description that is {}, expected an object", object->type_name()));
    for (const std::string_view key : kOtherArithmetic)
      if (object->find(key))
        tensors.fail(
            fmt::format("has a description with a member \"{}\", expected symmetric codes with a scale a row, "
                        "rotated by ConvRot or not; this version reads no others",
                        key));
  }
  if (!field(config, "format") && !field(config, "convrot"))
    tensors.fail(
        R"(has a description that does not say whether it is rotated, expected "convrot": true or false; ask its )"
        "publisher");
}

/// 1 if the weight is not rotated.
std::int64_t read_rotation_group(const ModuleTensors& tensors, const Json& config, std::int64_t in_features) {
  const Json* format = field(config, "format");
  if (format && (!format->is_string() || format->as_string() != "int8_tensorwise"))
    tensors.fail(fmt::format("has the format {}, expected \"int8_tensorwise\"", dump_json(*format).substr(0, 60)));
  if (flag(tensors, config, "full_precision_matrix_mult"))
    tensors.fail(
        "asks for full_precision_matrix_mult, which int8 codes are not computed with; set it to false in its "
        "description, or use the release's BF16 weights");
  if (!flag(tensors, config, "convrot")) return 1;

  constexpr std::int64_t kUsualGroup = 256;
  const Json* value = field(config, "convrot_groupsize");
  long long group = kUsualGroup;
  if (value && (!value->is_number() || !value->as_int64(group)))
    tensors.fail(fmt::format("has the convrot_groupsize {}, expected a number", dump_json(*value).substr(0, 60)));
  if (!is_rotation_group(group, in_features))
    tensors.fail(
        fmt::format("has inputs rotated in groups of {}, expected a power of four from 4 to 4096 that divides "
                    "its {} inputs",
                    group, in_features));
  return group;
}

/// Whether rows of two fused projections lie in turns, [rows, 2, ...], or one projection after the other.
enum class RowOrder { kPlain, kPaired };

/// A value a row, brought into the order of rows that a LinearWeight has.
/// @param stored  as it is in the file: its shape says how it is ordered
TensorView in_order(ModuleTensors& tensors, std::string_view name, const TensorView& stored, const TensorView& values,
                    RowOrder order) {
  if (order == RowOrder::kPlain) return values;
  if (stored.rank() < 2 || stored.size(1) != 2)
    tensors.fail(
        fmt::format("has a {} of {} and a weight of [rows, 2, in_features], which does not say whose rows "
                    "come first; store it as [rows, 2]",
                    name, stored.describe()));
  if (!tensors.reads_values()) return values;
  const std::int64_t num_rows = values.num_elements() / 2;
  const TensorView out = tensors.allocate(DType::kF32, {2 * num_rows});
  for (std::int64_t i = 0; i < 2 * num_rows; ++i) out.as<float>()[i % 2 * num_rows + i / 2] = values.as<float>()[i];
  return out;
}

/// [out_features] f32, from a scale a row or one for all.
TensorView read_row_scale(ModuleTensors& tensors, std::int64_t out_features, RowOrder order) {
  const TensorView stored =
      tensors.take_one_of({"weight_scale", "scale_weight", "weight_scales", "scale", "scales", "w_scale", "qscale"});
  if (!stored) tensors.fail("has int8 codes and no weight_scale; is the download complete?");
  const bool is_single = stored.num_elements() == 1;
  const TensorView values = tensors.positive_floats("weight_scale", stored, is_single ? 1 : out_features);
  if (!is_single || out_features == 1) return in_order(tensors, "weight_scale", stored, values, order);
  if (!tensors.reads_values()) return values;
  const TensorView all = tensors.allocate(DType::kF32, {out_features});
  std::fill_n(all.as<float>(), out_features, values.as<float>()[0]);
  return all;
}

bool are_equal(const TensorView& a, const TensorView& b) {
  return std::equal(a.as<float>(), a.as<float>() + a.num_elements(), b.as<float>());
}

bool are_zero(const TensorView& a) {
  return std::all_of(a.as<float>(), a.as<float>() + a.num_elements(), [](float x) { return x == 0; });
}

/// [out_features] f32 or empty. Two names that hold different biases could mean their sum or either: that is an error.
TensorView read_bias(ModuleTensors& tensors, std::int64_t out_features, RowOrder order) {
  TensorView bias;
  for (const char* name : {"bias", "bias_correction", "output_bias", "out_bias", "calibrated_bias", "correction"}) {
    const TensorView stored = tensors.take_if(name);
    if (!stored) continue;
    const TensorView values = in_order(tensors, name, stored, tensors.floats(name, stored, out_features), order);
    if (!tensors.reads_values()) continue;
    if (bias && !are_zero(bias) && !are_zero(values) && !are_equal(bias, values))
      tensors.fail(fmt::format("has a bias and a {} that differ; keep one of them", name));
    if (!bias || are_zero(bias)) bias = values;
  }
  return bias;
}

TensorView take_codes(ModuleTensors& tensors) {
  const TensorView codes = tensors.take_one_of({"weight", "qweight", "weight_qdata", "weight_int8", "qdata"});
  if (!codes) tensors.fail("has no weight; is the download complete?");
  if (codes.dtype() != DType::kI8 || codes.rank() < 2 || codes.rank() > 3 || codes.num_elements() == 0)
    tensors.fail(fmt::format("has a weight of {}, expected [out_features, in_features] i8", codes.describe()));
  return codes;
}

/// [K, N] as [N, K], in a copy.
TensorView transposed(ModuleTensors& tensors, const TensorView& codes) {
  const std::int64_t in_features = codes.size(0), out_features = codes.size(1);
  if (in_features == out_features)
    tensors.fail(
        fmt::format("has a weight of {} that its description calls transposed, which cannot be checked where "
                    "both sizes are equal; store it as [out_features, in_features]",
                    codes.describe()));
  if (!tensors.reads_values()) return TensorView(nullptr, DType::kI8, {out_features, in_features});
  const TensorView out = tensors.allocate(DType::kI8, {out_features, in_features});
  constexpr std::int64_t kRowsPerTask = 64;
  parallel_ranges(out_features, kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = 0; k < in_features; ++k)
      for (std::int64_t o = begin; o < end; ++o)
        out.as<std::int8_t>()[o * in_features + k] = codes.as<std::int8_t>()[k * out_features + o];
  });
  return out;
}

/// [N, 2, K] as [2 N, K], the first projection's rows first, in a copy.
TensorView unpaired(ModuleTensors& tensors, const TensorView& codes) {
  if (codes.size(1) != 2)
    tensors.fail(fmt::format("has a weight of {}, expected [out_features, in_features] or [rows, 2, in_features] i8",
                             codes.describe()));
  const std::int64_t num_rows = codes.size(0), in_features = codes.size(2);
  if (!tensors.reads_values()) return TensorView(nullptr, DType::kI8, {2 * num_rows, in_features});
  const TensorView out = tensors.allocate(DType::kI8, {2 * num_rows, in_features});
  for (std::int64_t row = 0; row < num_rows; ++row)
    for (std::int64_t part = 0; part < 2; ++part)
      std::copy_n(codes.as<std::int8_t>() + (2 * row + part) * in_features, in_features,
                  out.as<std::int8_t>() + (part * num_rows + row) * in_features);
  return out;
}

}  // namespace

LinearWeight read_int8(ModuleTensors& tensors, const Json* config) {
  LinearWeight linear;
  linear.format = WeightFormat::kInt8;
  const TensorView codes = take_codes(tensors);
  const TensorView description = tensors.take_if("comfy_quant");
  if (!description && !config)
    tensors.fail("has int8 codes and nothing that says whether they are rotated; expected comfy_quant");
  const Json fields = description ? tensors.json("comfy_quant", description) : *config;
  check_members(tensors, fields);

  const RowOrder order = codes.rank() == 3 ? RowOrder::kPaired : RowOrder::kPlain;
  const bool is_transposed = flag(tensors, fields, "transposed");
  if (is_transposed && order == RowOrder::kPaired)
    tensors.fail(fmt::format("has a weight of {} that its description calls transposed, expected two dimensions",
                             codes.describe()));
  linear.weight = order == RowOrder::kPaired ? unpaired(tensors, codes)
                  : is_transposed            ? transposed(tensors, codes)
                                             : codes;
  const std::int64_t out_features = linear.out_features(), in_features = linear.in_features();
  linear.int8.rotation_group = read_rotation_group(tensors, fields, in_features);
  linear.int8.row_scale = read_row_scale(tensors, out_features, order);
  linear.bias = read_bias(tensors, out_features, order);
  if (const TensorView factor = tensors.take_if("pre_quant_scale"))
    linear.int8.input_factor = tensors.positive_floats("pre_quant_scale", factor, in_features);
  tensors.take_one_of({"input_scale", "scale_input"});  // inputs get a scale of their own, a row each
  tensors.check_all_taken();
  return linear;
}

LinearWeight read_int_quantized(ModuleTensors& tensors) {
  const TensorView codes = take_codes(tensors);
  if (codes.rank() != 2)
    tensors.fail(fmt::format("has a weight of {}, expected [out_features, in_features] i8", codes.describe()));
  const std::int64_t out_features = codes.size(0), in_features = codes.size(1);
  const TensorView row_scale = read_row_scale(tensors, out_features, RowOrder::kPlain);
  if (const TensorView zero = tensors.take_if("weight_zero_point")) {
    const auto* bytes = static_cast<const std::uint8_t*>(zero.data());
    if (tensors.reads_values() &&
        std::any_of(bytes, bytes + zero.num_bytes(), [](std::uint8_t byte) { return byte != 0; }))
      tensors.fail("has a weight_zero_point that is not 0; only symmetric codes are read");
  }

  LinearWeight linear;
  linear.bias = tensors.bias("bias", tensors.take_if("bias"), out_features);
  for (const char* name : {"input_scale", "input_zero_point"}) tensors.take_if(name);
  tensors.check_all_taken();
  if (!tensors.reads_values()) {
    linear.weight = TensorView(nullptr, DType::kBF16, {out_features, in_features});
    return linear;
  }
  linear.weight = tensors.allocate(DType::kBF16, {out_features, in_features});
  constexpr std::int64_t kRowsPerTask = 16;
  parallel_ranges(out_features, kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o)
      for (std::int64_t i = o * in_features; i < (o + 1) * in_features; ++i)
        linear.weight.as<bfloat16>()[i] =
            to_bfloat16(static_cast<float>(codes.as<std::int8_t>()[i]) * row_scale.as<float>()[o]);
  });
  return linear;
}

}  // namespace treble
