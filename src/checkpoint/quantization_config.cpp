#include "checkpoint/quantization_config.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <system_error>
#include <utility>

#include "base/mapped_file.h"
#include "checkpoint/tensor_names.h"

namespace treble {
namespace {

bool is_compressed_tensors(const Json& config) {
  const Json* method = config.find("quant_method");
  return method && method->is_string() && method->as_string() == "compressed-tensors";
}

/// Of what is said of a whole release, what a module's own description may say; else nothing but that it is ConvRot.
Json module_description(const Json& config) {
  const Json* params = config.find("params");
  const bool has_flag = config.find("convrot") || (params && params->find("convrot"));
  Json::Object fields;
  for (const char* key : {"convrot", "convrot_groupsize", "transposed", "full_precision_matrix_mult"}) {
    const Json* value = config.find(key);
    if (!value && params) value = params->find(key);
    if (value) fields.emplace_back(key, *value);
  }
  if (!has_flag) fields.emplace_back("convrot", true);
  return fields;
}

}  // namespace

void QuantizationConfig::add_header(const SafetensorsFile& file) {
  const Json* text = file.metadata().find("_quantization_metadata");
  if (!text || !text->is_string()) return;
  const std::string what = fmt::format("checkpoint: {}: _quantization_metadata", file.path().string());
  const Json json = parse_json(text->as_string(), what, ErrorCode::kCheckpoint);
  const Json* layers = json.find("layers");
  if (!layers || !layers->is_object()) return;
  // The dot makes it the name of a tensor, which is what prefixes are known of.
  for (const auto& [module, config] : layers->as_object()) {
    std::string name = canonical_name(module + '.');
    name.pop_back();
    of_module_.insert_or_assign(std::move(name), config);
  }
}

void QuantizationConfig::read_folder(const std::filesystem::path& folder) {
  for (const char* name :
       {"config.json", "quantization_config.json", "quantize_config.json", "int8_config.json", "convrot_config.json"}) {
    const std::filesystem::path path = folder / name;
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    const Json json =
        parse_json(read_text_file(path), fmt::format("checkpoint: {}", path.string()), ErrorCode::kCheckpoint);
    const Json* config = std::string_view(name) == "config.json" ? json.find("quantization_config") : &json;
    if (!config || !config->is_object()) continue;
    const bool is_convrot = dump_json(*config).find("convrot") != std::string::npos;
    if (!is_convrot && !is_compressed_tensors(*config)) continue;
    of_release_ = is_convrot ? module_description(*config) : *config;
    return;
  }
}

const Json* QuantizationConfig::find(std::string_view module) const {
  const auto found = of_module_.find(module);
  if (found != of_module_.end()) return &found->second;
  return of_release_.is_null() ? nullptr : &of_release_;
}

}  // namespace treble
