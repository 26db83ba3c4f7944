#include "quant/read_int8.h"

#include <fmt/format.h>

#include <algorithm>

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

/// [out_features] f32, from a scale a row or one for all.
TensorView read_row_scale(ModuleTensors& tensors, std::int64_t out_features) {
  const TensorView stored =
      tensors.take_one_of({"weight_scale", "scale_weight", "weight_scales", "scale", "scales", "w_scale", "qscale"});
  if (!stored) tensors.fail("has int8 codes and no weight_scale; is the download complete?");
  const bool is_single = stored.num_elements() == 1;
  const TensorView values = tensors.floats("weight_scale", stored, is_single ? 1 : out_features);
  for (std::int64_t i = 0; i < values.num_elements(); ++i)
    if (!(values.as<float>()[i] > 0))
      tensors.fail(fmt::format("has {} in its weight_scale at {}; a scale is above 0", values.as<float>()[i], i));
  if (!is_single || out_features == 1) return values;
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
TensorView read_bias(ModuleTensors& tensors, std::int64_t out_features) {
  TensorView bias;
  for (const char* name : {"bias", "bias_correction", "output_bias", "out_bias", "calibrated_bias", "correction"}) {
    const TensorView stored = tensors.take_if(name);
    if (!stored) continue;
    const TensorView values = tensors.floats(name, stored, out_features);
    if (bias && !are_zero(bias) && !are_zero(values) && !are_equal(bias, values))
      tensors.fail(fmt::format("has a bias and a {} that differ; keep one of them", name));
    if (!bias || are_zero(bias)) bias = values;
  }
  return bias;
}

TensorView read_codes(ModuleTensors& tensors) {
  const TensorView codes = tensors.take_one_of({"weight", "qweight", "weight_qdata", "weight_int8", "qdata"});
  if (!codes) tensors.fail("has no weight; is the download complete?");
  if (codes.dtype() != DType::kI8 || codes.rank() != 2)
    tensors.fail(fmt::format("has a weight of {}, expected [out_features, in_features] i8", codes.describe()));
  return codes;
}

}  // namespace

LinearWeight read_int8(ModuleTensors& tensors, const Json* config) {
  LinearWeight linear;
  linear.format = WeightFormat::kInt8;
  linear.weight = read_codes(tensors);
  const std::int64_t out_features = linear.out_features(), in_features = linear.in_features();

  const TensorView description = tensors.take_if("comfy_quant");
  if (!description && !config)
    tensors.fail("has int8 codes and nothing that says whether they are rotated; expected comfy_quant");
  linear.int8.rotation_group =
      read_rotation_group(tensors, description ? tensors.json("comfy_quant", description) : *config, in_features);
  linear.int8.row_scale = read_row_scale(tensors, out_features);
  linear.bias = read_bias(tensors, out_features);
  if (const TensorView factor = tensors.take_if("pre_quant_scale"))
    linear.int8.input_factor = tensors.floats("pre_quant_scale", factor, in_features);
  tensors.take_one_of({"input_scale", "scale_input"});  // inputs get a scale of their own, a row each
  tensors.check_all_taken();
  return linear;
}

}  // namespace treble
