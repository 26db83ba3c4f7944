#include "model/release_shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "checkpoint/read_linear.h"
#include "checkpoint/tensor_names.h"
#include "model/fused_name.h"
#include "quant/module_tensors.h"

namespace treble {

ReleaseShapes::ReleaseShapes(const std::filesystem::path& folder, WeightConversion conversion)
    : ShapeSource(false, conversion), checkpoint_(folder) {
  for (const Checkpoint::Entry& entry : checkpoint_.entries()) by_name_.emplace(entry.name, &entry);
}

bool ReleaseShapes::has(const std::string& name) const {
  const auto found = by_name_.lower_bound(name + ".");
  return found != by_name_.end() && found->first.starts_with(name + ".");
}

ModuleParts ReleaseShapes::parts_of(const std::string& module) const {
  ModuleParts parts;
  const std::string prefix = module + ".";
  for (auto it = by_name_.lower_bound(prefix); it != by_name_.end() && it->first.starts_with(prefix); ++it)
    parts.emplace(it->first.substr(prefix.size()), it->second->view);
  return parts;
}

LinearWeight ReleaseShapes::linear(const std::string& name, std::int64_t out_features, std::int64_t in_features,
                                   bool has_bias) {
  std::string module = name;
  if (const std::optional<FusedName> fused = fused_name(name); !has(name) && fused) module = fused->module;
  ModuleParts parts = parts_of(module);
  const StorageFormat format = recognise_format(parts);
  if (!format.is_quantized || parts.empty()) return ShapeSource::linear(name, out_features, in_features, has_bias);
  has_bias = has_bias || std::ranges::any_of(parts, [](const auto& part) {
               return part.first.ends_with("bias") || part.first == "bias_correction" || part.first == "correction";
             });
  if (parts.contains("pre_quant_scale") && !factors_.contains(module))  // shared by the parts of a fused one
    factors_.emplace(module, nowhere(DType::kF32, {in_features}));
  ModuleTensors tensors(fmt::format("checkpoint: {}: {}", checkpoint_.folder().string(), quote_name(module)),
                        std::move(parts), ReadDepth::kLayout);
  const LinearWeight read = read_quantized_linear(format, checkpoint_.quantization(module), tensors);
  if (read.format == WeightFormat::kDense) return ShapeSource::linear(name, out_features, in_features, has_bias);
  if (read.format == WeightFormat::kNf4)
    return nf4_linear_of(read.nf4, read.nf4.absmax.dtype() == DType::kU8, out_features, in_features, has_bias);
  LinearWeight linear = linear_of(read.format, out_features, in_features, has_bias, read.int8.rotation_group);
  if (const auto factor = factors_.find(module); factor != factors_.end()) linear.int8.input_factor = factor->second;
  return linear;
}

}  // namespace treble
