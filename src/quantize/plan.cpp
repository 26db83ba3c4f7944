#include "quantize/plan.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <map>
#include <set>

#include "checkpoint/shard_index.h"
#include "checkpoint/storage_format.h"
#include "checkpoint/tensor_names.h"
#include "quant/encode_int8.h"
#include "quant/encode_nf4.h"
#include "quant/nf4.h"
#include "quant/rotation.h"
#include "tensor/element.h"

namespace treble {
namespace {

void check_group_size(const QuantizeOptions& options) {
  const std::int64_t size = options.group_size;
  if (size == 0) return;
  const auto refuse = [&](std::string_view expected) {
    throw Error(ErrorCode::kArgument, fmt::format("quantize: a group size of {} does not go with {}, expected {}", size,
                                                  to_string(options.format), expected));
  };
  if (options.format == QuantizeFormat::kInt8) refuse("none: a row has one scale");
  if (options.format == QuantizeFormat::kInt8Convrot && !is_rotation_group(size, size))
    refuse("a power of four from 4 to 4096");
  if (options.format == QuantizeFormat::kNf4 && !is_nf4_block_size(size)) refuse("a power of two from 32 to 4096");
}

std::vector<std::int64_t> shape_of(const TensorView& view) {
  std::vector<std::int64_t> shape;
  for (int dim = 0; dim < view.rank(); ++dim) shape.push_back(view.size(dim));
  return shape;
}

class Planner {
 public:
  Planner(const Checkpoint& checkpoint, const QuantizeOptions& options) : checkpoint_(checkpoint), options_(options) {}

  QuantizePlan run() {
    check_group_size(options_);
    check_plain();
    for (const SafetensorsFile& file : checkpoint_.files()) {
      if (file.path().filename() == kHeadFile) continue;
      for (const SafetensorsFile::Tensor& tensor : file.tensors()) add(file, tensor);
    }
    for (const std::string& pattern : options_.keep)
      if (!used_patterns_.contains(pattern))
        throw Error(ErrorCode::kArgument,
                    fmt::format("quantize: --keep {} stands for no module that {} converts; modules are named like "
                                "\"text.layers.0.mlp.up_proj\"",
                                quote_name(pattern), to_string(options_.format)));
    if (plan_.summary.converted == 0)
      throw Error(ErrorCode::kArgument, "quantize: nothing is left to convert; give fewer --keep");
    plan_.summary.shards = static_cast<std::int64_t>(plan_.shards.size());
    return std::move(plan_);
  }

 private:
  /// What is quantised already would lose twice.
  void check_plain() const {
    std::map<std::string_view, ModuleParts> modules;
    for (const Checkpoint::Entry& entry : checkpoint_.entries()) {
      const ModulePart split = split_module(entry.name);
      modules[split.module].emplace(split.part, entry.view);
    }
    for (const auto& [name, parts] : modules)
      if (const StorageFormat format = recognise_format(parts); format.is_quantized)
        fail(std::string(name),
             fmt::format("is stored as {} already; start from the release's BF16 weights", format.name));
  }

  void add(const SafetensorsFile& file, const SafetensorsFile::Tensor& tensor) {
    PlannedConversion conversion{.source = &tensor, .module = {}, .tensors = {}, .text = {}};
    if (is_wanted(file, tensor)) {
      conversion.module = tensor.name.substr(0, tensor.name.size() - std::string_view(".weight").size());
      convert(conversion);
      ++plan_.summary.converted;
    } else {
      conversion.tensors.push_back({.name = tensor.name, .dtype = tensor.view.dtype(), .shape = shape_of(tensor.view)});
    }
    const std::uint64_t num_bytes = conversion.num_bytes();
    plan_.summary.bytes_before += tensor.view.num_bytes();
    plan_.summary.bytes_after += num_bytes;
    if (plan_.shards.empty() || (shard_bytes_ > 0 && shard_bytes_ + num_bytes > options_.max_shard_bytes)) {
      plan_.shards.emplace_back();
      shard_bytes_ = 0;
    }
    shard_bytes_ += num_bytes;
    plan_.shards.back().push_back(std::move(conversion));
  }

  /// Whether a tensor is a weight that is to be converted.
  bool is_wanted(const SafetensorsFile& file, const SafetensorsFile::Tensor& tensor) {
    if (is_ignored(tensor.name)) return false;
    const std::string name = canonical_name(tensor.name);
    const ModulePart split = split_module(name);
    const std::string module(split.module);
    if (split.part != "weight" || !is_converted(options_.format, module)) return false;
    if (tensor.view.rank() != 2 || !is_floating(tensor.view.dtype()))
      throw Error(ErrorCode::kCheckpoint,
                  fmt::format("checkpoint: {}: {} is {}, expected [out_features, in_features] floating numbers",
                              file.path().string(), quote_name(tensor.name), tensor.view.describe()));
    const std::string stored_module = tensor.name.substr(0, tensor.name.size() - std::string_view(".weight").size());
    bool is_kept = false;
    for (const std::string& pattern : options_.keep) {
      if (!matches_pattern(pattern, module) && !matches_pattern(pattern, stored_module)) continue;
      used_patterns_.insert(pattern);
      is_kept = true;
    }
    if (!is_kept) {
      check_rotation(module, tensor.view.size(1));
      return true;
    }
    plan_.kept_modules.push_back(stored_module);
    ++plan_.summary.kept;
    return false;
  }

  /// Before hours of work, not in the middle of them.
  void check_rotation(const std::string& module, std::int64_t in_features) const {
    if (options_.format != QuantizeFormat::kInt8Convrot) return;
    const std::int64_t group = group_size_of(options_);
    if (!is_rotation_group(group, in_features))
      fail(module,
           fmt::format("has {} inputs, which groups of {} do not divide; choose another --group-size or --keep it",
                       in_features, group));
  }

  void convert(PlannedConversion& conversion) const {
    const std::int64_t out_features = conversion.source->view.size(0), in_features = conversion.source->view.size(1);
    const std::string& module = conversion.module;
    std::vector<PlannedTensor>& tensors = conversion.tensors;
    if (options_.format != QuantizeFormat::kNf4) {
      tensors.push_back({.name = module + ".weight", .dtype = DType::kI8, .shape = {out_features, in_features}});
      tensors.push_back({.name = module + ".weight_scale", .dtype = DType::kF32, .shape = {out_features, 1}});
      conversion.text = module + ".comfy_quant";
      return;
    }
    const std::int64_t count = out_features * in_features;
    const std::int64_t num_blocks = num_blocks_of(count, group_size_of(options_));
    tensors.push_back({.name = module + ".weight", .dtype = DType::kU8, .shape = {num_blocks_of(count, 2), 1}});
    tensors.push_back({.name = module + ".weight.absmax", .dtype = DType::kU8, .shape = {num_blocks}});
    tensors.push_back({.name = module + ".weight.quant_map", .dtype = DType::kF32, .shape = {16}});
    tensors.push_back({.name = module + ".weight.nested_absmax",
                       .dtype = DType::kF32,
                       .shape = {num_blocks_of(num_blocks, Nf4{}.nested_block_size)}});
    tensors.push_back({.name = module + ".weight.nested_quant_map", .dtype = DType::kF32, .shape = {256}});
    conversion.text = module + ".weight.quant_state.bitsandbytes__nf4";
  }

  [[noreturn]] void fail(const std::string& module, const std::string& what) const {
    throw Error(ErrorCode::kCheckpoint,
                fmt::format("quantize: {}: {} {}", checkpoint_.folder().string(), quote_name(module), what));
  }

  const Checkpoint& checkpoint_;
  const QuantizeOptions& options_;
  QuantizePlan plan_;
  std::uint64_t shard_bytes_ = 0;
  std::set<std::string> used_patterns_;
};

}  // namespace

std::uint64_t PlannedConversion::num_bytes() const {
  std::uint64_t bytes = 0;
  for (const PlannedTensor& tensor : tensors) bytes += tensor.num_bytes();
  return bytes;
}

std::int64_t group_size_of(const QuantizeOptions& options) {
  if (options.format == QuantizeFormat::kInt8) return 1;
  if (options.group_size > 0) return options.group_size;
  return options.format == QuantizeFormat::kNf4 ? Nf4Encoding{}.block_size : kUsualRotationGroup;
}

QuantizePlan plan_quantization(const Checkpoint& checkpoint, const QuantizeOptions& options) {
  return Planner(checkpoint, options).run();
}

}  // namespace treble
