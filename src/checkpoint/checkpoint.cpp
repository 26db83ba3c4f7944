#include "checkpoint/checkpoint.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>
#include <system_error>
#include <unordered_set>

#include "checkpoint/release_folder.h"
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
  check_release_folder(folder);
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

  quantization_.read_folder(folder);
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
  return quantization_.find(module);
}

void Checkpoint::add_backbone_file(const fs::path& path) {
  const SafetensorsFile& file = files_.emplace_back(path);
  quantization_.add_header(file);
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
