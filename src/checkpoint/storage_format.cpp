#include "checkpoint/storage_format.h"

#include <fmt/format.h>
#include <treble/error.h>
#include <treble/json.h>

#include <algorithm>
#include <optional>

namespace treble {
namespace {

constexpr std::string_view kQuantState = "weight.quant_state.bitsandbytes__";
constexpr std::string_view kNf4State = "weight.quant_state.bitsandbytes__nf4";

constexpr std::string_view kParts[] = {
    "weight", "bias",
    // bitsandbytes
    "weight.absmax", "weight.quant_map", "weight.nested_absmax", "weight.nested_quant_map", kNf4State,
    "weight.quant_state.bitsandbytes__fp4",
    // int8 and fp8
    "weight_scale", "weight_scale_inv", "weight_scale_2", "scale_weight", "input_scale", "scale_input", "comfy_quant",
    "pre_quant_scale", "weight_scales", "scale", "w_scale", "qscale", "bias_correction", "output_bias", "out_bias",
    "calibrated_bias", "correction", "weight_qdata", "weight_int8", "qdata",
    // compressed-tensors, GPTQ, AWQ, MLX
    "weight_packed", "weight_shape", "weight_zero_point", "input_zero_point", "weight_g_idx", "weight_global_scale",
    "input_global_scale", "qweight", "qzeros", "scales", "g_idx", "biases"};

const TensorView* find(const ModuleParts& parts, std::string_view part) {
  const auto it = parts.find(part);
  return it == parts.end() ? nullptr : &it->second;
}

std::vector<std::int64_t> shape_of(const TensorView& view) {
  std::vector<std::int64_t> shape;
  for (int dim = 0; dim < view.rank(); ++dim) shape.push_back(view.size(dim));
  return shape;
}

/// A tensor of bytes that holds a JSON object, perhaps with zeros after it.
std::optional<Json> read_json(const TensorView& view) {
  std::string_view text(static_cast<const char*>(view.data()), view.num_bytes());
  while (text.ends_with('\0')) text.remove_suffix(1);
  try {
    Json json = parse_json(text, "checkpoint", ErrorCode::kCheckpoint);
    if (json.is_object()) return json;
  } catch (const Error&) {
  }
  return std::nullopt;
}

/// "weight is [2, 4] f8_e4m3".
std::string describe(std::string_view part, const TensorView& view) {
  return fmt::format("{} is {}", part.empty() ? "the tensor" : part, view.describe());
}

/// "; comfy_quant says {...}", as far as it is text of a readable length; or nothing.
std::string describe_text(const ModuleParts& parts, std::string_view part) {
  const TensorView* view = find(parts, part);
  if (!view) return fmt::format("; no {}", part);
  constexpr std::size_t kMostBytes = 300;
  const std::optional<Json> json = view->num_bytes() <= kMostBytes ? read_json(*view) : std::nullopt;
  return json ? fmt::format("; {} says {}", part, dump_json(*json)) : fmt::format("; {} is no readable JSON", part);
}

StorageFormat recognise_nf4(const ModuleParts& parts, const TensorView& state) {
  StorageFormat out{.name = "nf4", .is_quantized = true, .shape = {}, .problem = {}};
  const std::optional<Json> json = read_json(state);
  const Json* shape = json ? json->find("shape") : nullptr;
  std::int64_t count = 1;
  bool is_valid = shape && shape->is_array() && !shape->as_array().empty();
  for (std::size_t dim = 0; is_valid && dim < shape->as_array().size(); ++dim) {
    const Json& element = shape->as_array()[dim];
    long long size = 0;
    is_valid =
        element.is_number() && element.as_int64(size) && size > 0 && !__builtin_mul_overflow(count, size, &count);
    out.shape.push_back(size);
  }
  if (!is_valid) {
    out.shape.clear();
    out.problem = "has a quant_state without a valid shape";
    return out;
  }
  const TensorView* codes = find(parts, "weight");
  if (!codes) {
    out.problem = "has a quant_state and no weight";
  } else if (const auto needed = static_cast<std::size_t>(count / 2 + count % 2); codes->num_bytes() != needed) {
    out.problem =
        fmt::format("has {} bytes of nf4 codes, [{}] needs {}", codes->num_bytes(), fmt::join(out.shape, ", "), needed);
  }
  return out;
}

/// Whether the module's own description asks for rotated inputs.
bool is_rotated(const ModuleParts& parts) {
  const TensorView* description = find(parts, "comfy_quant");
  const std::optional<Json> json = description ? read_json(*description) : std::nullopt;
  if (!json) return false;
  const Json* rotated = json->find("convrot");
  if (const Json* nested = json->find("params"); !rotated && nested) rotated = nested->find("convrot");
  return rotated && rotated->is_bool() && rotated->as_bool();
}

StorageFormat recognise_int8(const ModuleParts& parts, const TensorView& weight) {
  StorageFormat out{.name = is_rotated(parts) ? "int8-convrot" : "int8",
                    .is_quantized = true,
                    .shape = shape_of(weight),
                    .problem = {}};
  constexpr std::string_view kScales[] = {"weight_scale", "scale_weight", "weight_scales", "scale",
                                          "scales",       "w_scale",      "qscale"};
  if (std::ranges::none_of(kScales, [&](std::string_view name) { return find(parts, name) != nullptr; }))
    out.problem = "has int8 codes and no weight_scale";
  return out;
}

/// Codes of 4 bits along the last dimension.
StorageFormat recognise_packed(const TensorView& packed) {
  StorageFormat out{.name = packed.dtype() == DType::kU8 ? "nvfp4" : "int4-packed",
                    .is_quantized = true,
                    .shape = shape_of(packed),
                    .problem = {}};
  const auto per_element = static_cast<std::int64_t>(2 * size_of(packed.dtype()));
  if (!out.shape.empty() && __builtin_mul_overflow(out.shape.back(), per_element, &out.shape.back())) out.shape.clear();
  return out;
}

/// GPTQ packs [in / 8, out], AWQ [in, out / 8]; both have scales [in / group, out].
StorageFormat recognise_qweight(const ModuleParts& parts, const TensorView& qweight) {
  StorageFormat out{.name = "int4-awq", .is_quantized = true, .shape = {}, .problem = {}};
  const TensorView* scales = find(parts, "scales");
  if (!scales || scales->rank() != 2 || qweight.rank() != 2) {
    out.problem = "has a qweight without scales [groups, out_features]";
    return out;
  }
  const bool is_gptq = qweight.size(1) == scales->size(1);
  if (is_gptq) out.name = "int4-gptq";
  std::int64_t in_features = qweight.size(0);
  if (!is_gptq || !__builtin_mul_overflow(in_features, std::int64_t{8}, &in_features))
    out.shape = {scales->size(1), in_features};
  return out;
}

}  // namespace

ModulePart split_module(std::string_view tensor_name) {
  ModulePart best{tensor_name, {}};
  for (const std::string_view part : kParts) {
    const bool matches = tensor_name.size() > part.size() + 1 && tensor_name.ends_with(part) &&
                         tensor_name[tensor_name.size() - part.size() - 1] == '.';
    if (matches && part.size() > best.part.size())
      best = {tensor_name.substr(0, tensor_name.size() - part.size() - 1), part};
  }
  return best;
}

StorageFormat recognise_format(const ModuleParts& parts) {
  const auto because = [](StorageFormat format, std::string reason) {
    format.reason = std::move(reason);
    return format;
  };
  const auto unread = [&](std::string name, std::string reason) {
    return because({.name = std::move(name), .is_quantized = true, .shape = {}, .problem = {}}, std::move(reason));
  };
  if (const TensorView* state = find(parts, kNf4State))
    return because(recognise_nf4(parts, *state),
                   fmt::format("there is a quant_state{}", describe_text(parts, kNf4State)));
  if (const auto it = parts.lower_bound(kQuantState); it != parts.end() && it->first.starts_with(kQuantState))
    return unread(it->first.substr(kQuantState.size()), fmt::format("there is {}", it->first));
  if (const TensorView* packed = find(parts, "weight_packed"))
    return because(recognise_packed(*packed), describe("weight_packed", *packed));
  for (const std::string_view name : {"qweight", "weight_qdata", "weight_int8", "qdata"})
    if (const TensorView* codes = find(parts, name); codes && codes->dtype() == DType::kI8)
      return because(recognise_int8(parts, *codes), describe(name, *codes) + describe_text(parts, "comfy_quant"));
  if (const TensorView* qweight = find(parts, "qweight")) {
    const TensorView* scales = find(parts, "scales");
    return because(recognise_qweight(parts, *qweight),
                   describe("qweight", *qweight) + (scales ? ", " + describe("scales", *scales) : ", no scales"));
  }

  const bool is_module = parts.contains("weight");
  const TensorView* weight = is_module ? find(parts, "weight") : find(parts, "");
  if (!weight) {
    const bool is_bias_alone = parts.size() == 1 && parts.contains("bias");
    return {.name = "?",
            .is_quantized = !is_bias_alone,
            .shape = {},
            .problem = is_bias_alone ? "has a bias and no weight" : "has parts of a quantised weight and no weight",
            .reason = "there is no weight"};
  }
  const std::string reason = describe(is_module ? "weight" : "", *weight);
  switch (weight->dtype()) {
    case DType::kI8:
      return because(recognise_int8(parts, *weight), reason + describe_text(parts, "comfy_quant"));
    case DType::kF8E4M3: {
      const bool is_block = find(parts, "weight_scale_inv") != nullptr;
      return because(
          {.name = is_block ? "fp8-block" : "fp8", .is_quantized = true, .shape = shape_of(*weight), .problem = {}},
          reason + (is_block ? "; there is a weight_scale_inv" : "; no weight_scale_inv"));
    }
    case DType::kU32:
      return unread("mlx-affine", reason);
    case DType::kU8:
      return because(
          {.name = "u8", .is_quantized = true, .shape = {}, .problem = "has packed codes and no quant_state"}, reason);
    default:
      return because({.name = std::string(to_string(weight->dtype())),
                      .is_quantized = false,
                      .shape = shape_of(*weight),
                      .problem = {}},
                     reason);
  }
}

}  // namespace treble
