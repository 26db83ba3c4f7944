#include "checkpoint/checkpoint.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>
#include <system_error>
#include <unordered_set>

#include "base/mapped_file.h"
#include "checkpoint/shard_index.h"
#include "checkpoint/tensor_names.h"

namespace treble {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, std::string_view what) {
  throw Error(ErrorCode::kCheckpoint, fmt::format("checkpoint: {} {}", path.string(), what));
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// The backbone file if the folder holds only a GGUF conversion, else an empty path.
fs::path find_gguf(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".gguf") return it->path();
  return {};
}

/// Every tensor that the index names is in the shard it names.
void check_index(const ShardIndex& index, const std::vector<SafetensorsFile>& shards, const fs::path& folder) {
  std::unordered_set<std::string> stored;
  for (const SafetensorsFile& shard : shards)
    for (const SafetensorsFile::Tensor& tensor : shard.tensors())
      stored.insert(shard.path().filename().string() + '/' + tensor.name);
  for (const auto& [name, shard] : index.weight_map)
    if (!stored.contains(shard + '/' + name))
      fail(folder / kIndexFile, fmt::format("says that {} holds {}, which it does not; download both files again",
                                            quote_name(shard), quote_name(name)));
}

}  // namespace

Checkpoint::Checkpoint(const fs::path& folder) : folder_(folder) {
  std::error_code error;
  if (folder.extension() == ".gguf" && fs::is_regular_file(folder, error))
    fail(folder, "is a GGUF file, expected a folder of safetensors; use the original release, not its GGUF form");
  if (!fs::is_directory(folder, error))
    fail(folder, is_there(folder) ? "is a file, expected a release folder; name the folder that holds config.json"
                                  : "does not exist, expected a release folder; check the path");

  if (is_there(folder / kSingleFile)) {
    add_backbone_file(folder / kSingleFile);
  } else if (is_there(folder / kIndexFile)) {
    const ShardIndex index = read_shard_index(folder / kIndexFile);
    for (const std::string& shard : index.shards) {
      if (!is_there(folder / shard))
        fail(folder / shard, fmt::format("does not exist, {} names it; download it again", kIndexFile));
      add_backbone_file(folder / shard);
    }
    check_index(index, files_, folder);
  } else if (const fs::path gguf = find_gguf(folder); !gguf.empty()) {
    fail(gguf, "is a GGUF file, expected safetensors; convert from the original release, not from its GGUF form");
  } else {
    fail(folder, fmt::format("has neither {} nor {}; download the release again", kSingleFile, kIndexFile));
  }

  const bool has_text = std::ranges::any_of(entries_, [](const Entry& e) { return e.name.starts_with("text."); });
  if (!has_text)
    fail(folder, fmt::format("has no text model: none of its {} tensors is named like "
                             "\"model.language_model.layers.0...\"; re-export it in the release's layout",
                             entries_.size()));

  read_release_quantization();
  if (!is_there(folder / kHeadFile))
    fail(folder / kHeadFile, "does not exist, expected the decision head; copy it from the original release");
  files_.emplace_back(folder / kHeadFile);
  for (const SafetensorsFile::Tensor& tensor : files_.back().tensors())
    add("head." + tensor.name, files_.back(), tensor);
}

const Checkpoint::Entry* Checkpoint::find(std::string_view name) const {
  const auto found = index_.find(std::string(name));
  return found == index_.end() ? nullptr : &entries_[found->second];
}

const Json* Checkpoint::quantization(std::string_view module) const {
  const auto found = quantization_.find(module);
  if (found != quantization_.end()) return &found->second;
  return release_quantization_.is_null() ? nullptr : &release_quantization_;
}

void Checkpoint::read_release_quantization() {
  for (const char* name :
       {"config.json", "quantization_config.json", "quantize_config.json", "int8_config.json", "convrot_config.json"}) {
    if (!is_there(folder_ / name)) continue;
    const std::string what = fmt::format("checkpoint: {}", (folder_ / name).string());
    Json json = parse_json(read_text_file(folder_ / name), what, ErrorCode::kCheckpoint);
    const Json* config = std::string_view(name) == "config.json" ? json.find("quantization_config") : &json;
    const Json* method = config ? config->find("quant_method") : nullptr;
    const bool is_convrot = config && dump_json(*config).find("convrot") != std::string::npos;
    if (method && method->is_string() && method->as_string() == "compressed-tensors" && !is_convrot) {
      release_quantization_ = *config;
      return;
    }
    // Nothing else but ConvRot is described for a whole release in this way.
    if (!config || !config->is_object() || !is_convrot) continue;
    const bool has_flag =
        config->find("convrot") || (config->find("params") && config->find("params")->find("convrot"));
    Json::Object fields{{"convrot", true}};
    if (const Json* group = config->find("convrot_groupsize")) fields.emplace_back("convrot_groupsize", *group);
    release_quantization_ = has_flag ? *config : Json(std::move(fields));
    if (Json::Object& all = release_quantization_.as_object(); has_flag)
      std::erase_if(
          all, [](const Json::Member& member) { return member.first == "format" || member.first == "quant_method"; });
    return;
  }
}

void Checkpoint::add_quantization(const SafetensorsFile& file) {
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
    quantization_.insert_or_assign(std::move(name), config);
  }
}

void Checkpoint::add_backbone_file(const fs::path& path) {
  const SafetensorsFile& file = files_.emplace_back(path);
  add_quantization(file);
  for (const SafetensorsFile::Tensor& tensor : file.tensors()) {
    if (is_ignored(tensor.name)) {
      ignored_.push_back(tensor.name);
      continue;
    }
    std::string name = canonical_name(tensor.name);
    if (is_mlx_convolution(name, tensor.view))
      fail(path, fmt::format("is an MLX conversion: {} is {}, expected [conv_dim, 1, kernel]; use the original release",
                             quote_name(tensor.name), tensor.view.describe()));
    add(std::move(name), file, tensor);
  }
}

void Checkpoint::add(std::string name, const SafetensorsFile& file, const SafetensorsFile::Tensor& tensor) {
  const auto [it, is_new] = index_.emplace(name, entries_.size());
  if (!is_new) {
    const Entry& first = entries_[it->second];
    fail(file.path(), fmt::format("holds {}, which {} holds as {} too; keep one of them", quote_name(tensor.name),
                                  first.file.filename().string(), quote_name(first.stored_name)));
  }
  entries_.push_back({std::move(name), tensor.name, file.path(), tensor.view});
}

}  // namespace treble
