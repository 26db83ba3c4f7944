#include "checkpoint/inspect.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <tuple>
#include <unordered_set>

#include "base/mapped_file.h"
#include "checkpoint/expected_tensors.h"
#include "checkpoint/quantization_config.h"
#include "checkpoint/read_linear.h"
#include "checkpoint/release_folder.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/shard_index.h"
#include "checkpoint/storage_format.h"
#include "checkpoint/tensor_names.h"
#include "tensor/element.h"
#include "text/tokenizer.h"

namespace treble {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHeadPrefix = "head.";

struct KnownFile {
  std::string_view name, role;
  bool is_required;
};
constexpr KnownFile kKnownFiles[] = {{"config.json", "config", true},
                                     {"joint_head_config.json", "config", true},
                                     {kHeadFile, "head", true},
                                     {"tokenizer.json", "text", true},
                                     {"tokenizer_config.json", "text", true},
                                     {"processor_config.json", "media", true},
                                     {kIndexFile, "weights", false},
                                     {"preprocessor_config.json", "media", false},
                                     {"video_preprocessor_config.json", "media", false},
                                     {"special_tokens_map.json", "text", false},
                                     {"added_tokens.json", "text", false},
                                     {"vocab.json", "text", false},
                                     {"merges.txt", "text", false},
                                     {"chat_template.jinja", "text", false},
                                     {"chat_template.json", "text", false},
                                     {"generation_config.json", "other", false},
                                     {"README.md", "other", false},
                                     {"LICENSE", "other", false},
                                     {".gitattributes", "other", false}};

/// Text model, vision tower and lm_head, as published.
constexpr std::pair<std::int64_t, std::string_view> kKnownSizes[] = {{27'356'728'560, "27B (Clef)"},
                                                                     {9'409'813'744, "9B (Clef-Flash)"},
                                                                     {4'539'265'536, "4B"},
                                                                     {2'213'241'664, "2B"},
                                                                     {852'985'920, "0.8B"}};

constexpr std::string_view kGroups[] = {"embedding",  "lm_head", "text attention", "text delta net", "text mlp",
                                        "text norms", "vision",  "head",           "other"};

std::string_view group_of(std::string_view name) {
  if (name.starts_with(kHeadPrefix)) return "head";
  if (name.starts_with("visual.")) return "vision";
  if (name.starts_with("lm_head.")) return "lm_head";
  if (!name.starts_with("text.")) return "other";
  if (name.starts_with("text.embed_tokens.")) return "embedding";
  if (name.find(".self_attn.") != name.npos) return "text attention";
  if (name.find(".linear_attn.") != name.npos) return "text delta net";
  if (name.find(".mlp.") != name.npos) return "text mlp";
  if (name.find("norm.") != name.npos) return "text norms";
  return "other";
}

/// The tensors of one module and how they store it.
struct StoredModule {
  ModuleParts parts;
  StorageFormat format;
};

/// Tables and the output embedding are plain in every release that is read.
bool may_be_quantized(std::string_view module) {
  return module != "lm_head" && !module.ends_with("embed_tokens") && !module.ends_with("pos_embed") &&
         !module.ends_with("type_embedding");
}

/// Int8 releases add calibrated biases to Linears of the text model, which has none of its own.
bool is_correction(std::string_view module, std::string_view part, const StorageFormat& format) {
  return part == "bias" && format.is_quantized && module.starts_with("text.");
}

std::int64_t count_parameters(std::string_view module, const StoredModule& stored) {
  std::int64_t count = 0;
  for (const auto& [part, view] : stored.parts) {
    const bool is_weight = part.empty() || part == "weight";
    const bool is_plain = is_weight ? !stored.format.is_quantized : part == "bias";
    if (is_plain && !is_correction(module, part, stored.format)) count += view.num_elements();
  }
  if (stored.format.is_quantized && !stored.format.shape.empty()) {
    std::int64_t weights = 1;
    bool fits = true;
    for (const std::int64_t size : stored.format.shape) fits = fits && !__builtin_mul_overflow(weights, size, &weights);
    if (fits) count += weights;
  }
  return count;
}

class Inspector {
 public:
  explicit Inspector(const fs::path& folder) : folder_(folder) { out_.folder = folder.string(); }

  ReleaseSummary run() {
    list_files();
    const std::optional<Json> config = read_config("config.json");
    const std::optional<Json> head_config = read_config("joint_head_config.json");
    read_weights();
    attempt([&] { quantization_.read_folder(folder_); });
    for (auto& [name, module] : modules_) {
      module.format = recognise_format(module.parts);
      check_module(name, module);
    }
    check_tensors(config, head_config);
    check_tokenizer(config);
    summarise_modules();
    if (config) out_.config = config_facts(*config);
    if (head_config && head_config->is_object()) out_.head_config = head_config->as_object();
    if (config && head_config)
      attempt([&] { out_.activation_bytes_per_1k_tokens = 1000 * activation_bytes_per_token(*config, *head_config); });
    return std::move(out_);
  }

 private:
  void problem(std::string message) {
    if (std::ranges::find(out_.problems, message) == out_.problems.end()) out_.problems.push_back(std::move(message));
  }

  /// Runs one step; what it throws about the release becomes a problem.
  template <typename Step>
  void attempt(const Step& step) {
    try {
      step();
    } catch (const Error& error) {
      problem(error.what());
    }
  }

  void list_files() {
    std::error_code error;
    for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
      std::error_code ignored;
      ReleaseSummary::File file{.name = it->path().filename().string(), .bytes = 0, .role = "unknown"};
      if (it->is_regular_file(ignored)) {
        const std::uintmax_t bytes = it->file_size(ignored);
        if (!ignored) file.bytes = bytes;
        for (const KnownFile& known : kKnownFiles)
          if (known.name == file.name) file.role = known.role;
      } else {
        file.name += '/';
      }
      out_.files.push_back(std::move(file));
    }
    if (error) problem(fmt::format("checkpoint: {} cannot be listed: {}", out_.folder, error.message()));
    std::ranges::sort(out_.files, {}, &ReleaseSummary::File::name);
    for (const KnownFile& known : kKnownFiles)
      if (known.is_required && !has_file(known.name)) out_.missing_files.emplace_back(known.name);
  }

  bool has_file(std::string_view name) const {
    return std::ranges::find(out_.files, name, &ReleaseSummary::File::name) != out_.files.end();
  }

  std::optional<Json> read_config(const char* name) {
    std::optional<Json> json;
    if (!has_file(name)) return json;
    attempt([&] {
      const std::string path = (folder_ / name).string();
      json = parse_json(read_text_file(path), fmt::format("checkpoint: {}", path), ErrorCode::kCheckpoint);
    });
    return json;
  }

  /// The files of the backbone; if none are named, every other safetensors file, so that a summary shows what is there.
  std::vector<std::string> backbone_files() {
    if (has_file(kSingleFile)) return {kSingleFile};
    std::vector<std::string> files;
    if (has_file(kIndexFile))
      attempt([&] {
        const ShardIndex index = read_shard_index(folder_ / kIndexFile);
        files = index.shards;
        indexed_ = index.weight_map;
      });
    if (!files.empty()) return files;

    if (!has_file(kIndexFile)) out_.missing_files.push_back(fmt::format("{} or {}", kSingleFile, kIndexFile));
    for (const ReleaseSummary::File& file : out_.files) {
      if (file.name != kHeadFile && file.name.ends_with(".safetensors")) files.push_back(file.name);
      if (file.name.ends_with(".gguf"))
        problem(fmt::format("checkpoint: {} is a GGUF file, expected safetensors; convert from the original release",
                            (folder_ / file.name).string()));
    }
    return files;
  }

  void read_weights() {
    for (const std::string& name : backbone_files()) {
      if (!has_file(name)) {
        out_.missing_files.push_back(name);
        continue;
      }
      set_role(name, "weights");
      read_file(name, "");
    }
    if (has_file(kHeadFile)) read_file(kHeadFile, kHeadPrefix);

    for (const auto& [tensor, shard] : indexed_)
      if (readable_.contains(shard) && !stored_in_.contains(shard + '/' + tensor))
        problem(fmt::format("checkpoint: {} says that {} holds {}, which it does not; download both files again",
                            (folder_ / kIndexFile).string(), quote_name(shard), quote_name(tensor)));
    for (const ReleaseSummary::File& file : out_.files)
      if (file.role == "unknown") out_.unknown_files.push_back(file.name);
  }

  void set_role(std::string_view name, std::string_view role) {
    std::ranges::find(out_.files, name, &ReleaseSummary::File::name)->role = role;
  }

  void read_file(const std::string& file_name, std::string_view prefix) {
    attempt([&] {
      const SafetensorsFile& file = files_.emplace_back(folder_ / file_name);
      quantization_.add_header(file);
      readable_.insert(file_name);
      for (const SafetensorsFile::Tensor& tensor : file.tensors()) {
        stored_in_.insert(file_name + '/' + tensor.name);
        if (prefix.empty() && is_ignored(tensor.name)) {
          out_.ignored_tensors.push_back(tensor.name);
          continue;
        }
        const std::string name = prefix.empty() ? canonical_name(tensor.name) : std::string(prefix) + tensor.name;
        if (is_mlx_convolution(name, tensor.view))
          problem(fmt::format("checkpoint: {} is an MLX conversion, whose layout differs; use the original release",
                              file.path().string()));
        const ModulePart split = split_module(name);
        const bool is_new = modules_[std::string(split.module)].parts.emplace(split.part, tensor.view).second;
        if (!is_new)
          problem(fmt::format("checkpoint: {} holds {}, which is stored twice; keep one of them", file.path().string(),
                              quote_name(tensor.name)));
      }
    });
  }

  /// What reading the module's weights would find wrong with its header.
  void check_module(const std::string& name, const StoredModule& module) {
    if (!module.format.problem.empty()) return problem(fmt::format("{} {}", quote_name(name), module.format.problem));
    if (!module.format.is_quantized) return;
    if (!may_be_quantized(name))
      return problem(fmt::format("{} is stored as {}, expected plain weights: no Linear is read from it",
                                 quote_name(name), module.format.name));
    attempt([&] {
      ModuleTensors tensors(quote_name(name), module.parts, ReadDepth::kLayout);
      read_quantized_linear(module.format, quantization_.find(name), tensors);
    });
  }

  void check_tokenizer(const std::optional<Json>& config) {
    if (!has_file("tokenizer.json") || !has_file("tokenizer_config.json")) return;
    attempt([&] {
      const Tokenizer tokenizer(folder_);
      const Json* text = config ? config->find("text_config") : nullptr;
      if (text) check_vocabulary(tokenizer, folder_, config_size(*text, "vocab_size"));
    });
  }

  void check_tensors(const std::optional<Json>& config, const std::optional<Json>& head_config) {
    bool knows_backbone = false, knows_head = false;
    std::unordered_set<std::string> expected_names;
    const auto expect = [&](const std::vector<ExpectedTensor>& tensors) {
      for (const ExpectedTensor& tensor : tensors) {
        expected_names.insert(tensor.name);
        check_tensor(tensor);
      }
    };
    if (config)
      attempt([&] {
        expect(expected_backbone_tensors(*config));
        knows_backbone = true;
        if (has_tied_embeddings(*config)) expected_names.insert("lm_head.weight");  // a copy that may be there
      });
    if (head_config)
      attempt([&] {
        expect(expected_head_tensors(*head_config));
        knows_head = true;
      });

    for (const auto& [module, stored] : modules_) {
      if (!(module.starts_with(kHeadPrefix) ? knows_head : knows_backbone)) continue;
      const bool is_quantized_weight = stored.format.is_quantized && expected_names.contains(module + ".weight");
      if (is_quantized_weight) continue;
      for (const auto& [part, view] : stored.parts) {
        std::string name = part.empty() ? module : module + '.' + part;
        if (!expected_names.contains(name)) out_.unknown_tensors.push_back(std::move(name));
      }
    }
  }

  void check_tensor(const ExpectedTensor& tensor) {
    const ModulePart split = split_module(tensor.name);
    const auto found = modules_.find(std::string(split.module));
    if (found == modules_.end()) return out_.missing_tensors.push_back(tensor.name);
    const StoredModule& stored = found->second;
    const auto part = stored.parts.find(split.part);

    std::vector<std::int64_t> shape;
    if (split.part == "weight" && stored.format.is_quantized) {
      if (stored.format.shape.empty()) return;  // its format's problem is listed already, or nothing to compare
      shape = stored.format.shape;
    } else if (part != stored.parts.end()) {
      if (!is_floating(part->second.dtype()))
        problem(
            fmt::format("{} is {}, expected bf16, f16, f32 or f64", quote_name(tensor.name), part->second.describe()));
      for (int dim = 0; dim < part->second.rank(); ++dim) shape.push_back(part->second.size(dim));
    } else {
      return out_.missing_tensors.push_back(tensor.name);
    }
    if (shape != tensor.shape)
      problem(fmt::format("{} is [{}], the configuration implies [{}]", quote_name(tensor.name), fmt::join(shape, ", "),
                          fmt::join(tensor.shape, ", ")));
  }

  void summarise_modules() {
    std::map<std::string_view, ReleaseSummary::Group> groups;
    // Modules of one form share a row, found by everything that the row shows.
    std::map<std::tuple<std::size_t, std::string, std::string, std::vector<std::int64_t>>,
             std::pair<ReleaseSummary::Module, std::vector<std::string>>>
        rows;
    for (const auto& [name, stored] : modules_) {
      const std::string_view group_name = group_of(name + '.');
      const std::int64_t parameters = count_parameters(name, stored);
      std::uint64_t bytes = 0;
      ReleaseSummary::Group& group = groups[group_name];
      for (const auto& [part, view] : stored.parts) {
        bytes += view.num_bytes();
        ++group.dtypes[std::string(to_string(view.dtype()))];
      }
      group.tensors += static_cast<std::int64_t>(stored.parts.size());
      group.parameters += parameters;
      group.bytes += bytes;
      ++group.formats[stored.format.name];
      (group_name == "head" ? out_.head_parameters : out_.backbone_parameters) += parameters;
      out_.weight_bytes += bytes;

      const auto order = static_cast<std::size_t>(std::ranges::find(kGroups, group_name) - std::begin(kGroups));
      auto& [row, names] = rows[{order, layer_pattern(name), stored.format.name, stored.format.shape}];
      row.group = group_name;
      row.format = stored.format.name;
      row.shape = stored.format.shape;
      row.copies += 1;
      row.parameters += parameters;
      row.bytes += bytes;
      names.push_back(name);
    }
    for (const std::string_view name : kGroups) {
      if (!groups.contains(name)) continue;
      groups[name].name = name;
      out_.groups.push_back(std::move(groups[name]));
    }
    for (auto& [key, value] : rows) {
      value.first.name = collapse_layers(value.second).front();
      out_.modules.push_back(std::move(value.first));
    }
    for (const auto& [parameters, size] : kKnownSizes)
      if (parameters == out_.backbone_parameters) out_.known_size = size;
  }

  /// The name with its first number left out.
  static std::string layer_pattern(const std::string& name) {
    const LayerName split = split_layer(name);
    return split.number < 0 ? name : split.before + "{}" + split.after;
  }

  static Json::Object config_facts(const Json& config) {
    Json::Object facts;
    const auto take = [&](const Json* object, std::initializer_list<const char*> keys, std::string_view prefix) {
      for (const char* key : keys)
        if (const Json* value = object ? object->find(key) : nullptr)
          facts.emplace_back(std::string(prefix) + key, *value);
    };
    const Json* text = config.find("text_config");
    take(&config, {"model_type", "tie_word_embeddings"}, "");
    take(text ? text : &config,
         {"num_hidden_layers", "hidden_size", "intermediate_size", "vocab_size", "num_attention_heads",
          "num_key_value_heads", "head_dim", "linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim",
          "linear_value_head_dim", "linear_conv_kernel_dim", "max_position_embeddings", "layer_types"},
         "");
    take(config.find("vision_config"), {"depth", "hidden_size", "intermediate_size", "num_heads", "patch_size"},
         "vision.");
    take(config.find("quantization_config"), {"quant_method", "bnb_4bit_quant_type", "bits"}, "quantization.");
    return facts;
  }

  const fs::path folder_;
  ReleaseSummary out_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, StoredModule> modules_;  // by canonical name
  QuantizationConfig quantization_;
  std::vector<std::pair<std::string, std::string>> indexed_;  // tensor, shard: what the index says
  std::unordered_set<std::string> stored_in_;                 // "shard/tensor": what the files say
  std::set<std::string> readable_;
};

}  // namespace

ReleaseSummary inspect_release(const fs::path& folder) {
  check_release_folder(folder);
  return Inspector(folder).run();
}

std::uint64_t activation_bytes_per_token(const Json& config, const Json& head_config) {
  const Json* inner = config.find("text_config");
  const Json& text = inner ? *inner : config;
  const std::int64_t head_dim = config_size(text, "head_dim", 256);
  const std::int64_t attention = 4 * config_size(text, "num_attention_heads", 16) * head_dim +
                                 2 * config_size(text, "num_key_value_heads", 4) * head_dim;
  const std::int64_t key_dim =
      config_size(text, "linear_num_key_heads", 16) * config_size(text, "linear_key_head_dim", 128);
  const std::int64_t value_dim =
      config_size(text, "linear_num_value_heads", 32) * config_size(text, "linear_value_head_dim", 128);
  const std::int64_t delta_net = 2 * (2 * key_dim + value_dim) + 2 * value_dim;
  const std::int64_t widest = std::max({2 * config_size(text, "intermediate_size"), attention, delta_net});
  return 4 * static_cast<std::uint64_t>(3 * config_size(text, "hidden_size") + widest +
                                        3 * config_size(head_config, "width"));
}

}  // namespace treble
