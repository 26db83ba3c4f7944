#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "checkpoint/quantization_config.h"
#include "checkpoint/safetensors.h"

namespace treble {

/// The weight files of a release folder as one set of named tensors: `model.safetensors`, or without it the shards that
/// `model.safetensors.index.json` names; and `joint_head.safetensors`. Names and bytes only.
///
/// Backbone names are given without the layout's prefix (tensor_names.cpp lists them):
/// "text.layers.0.mlp.up_proj.weight", "visual.merger.norm.weight", "lm_head.weight"; the head's are
/// "head.hidden_norm.weight". `mtp.*` is left out. A backbone tensor of no known layout keeps its stored name: who
/// reads the weights decides whether that is an error. A shard's tensors all count, also those that the index forgets.
class Checkpoint {
 public:
  struct Entry {
    std::string name;         ///< as above
    std::string stored_name;  ///< as in the file
    std::filesystem::path file;
    TensorView view;
  };

  /// @throws Error kCheckpoint naming the folder, file or tensor: missing folder, index or shard, a tensor that the
  ///         index names and its shard lacks, a tensor in two shards, an unknown layout; a MLX or GGUF layout is
  ///         named as what it is
  explicit Checkpoint(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  /// In file order: shards by name, tensors by place, the head last.
  const std::vector<Entry>& entries() const { return entries_; }
  /// The files themselves, with all that they hold: shards by name, the head's last.
  const std::vector<SafetensorsFile>& files() const { return files_; }
  /// nullptr if there is none of that name.
  const Entry* find(std::string_view name) const;
  /// How a module is quantised by what stands outside of its tensors; nullptr if nothing says (QuantizationConfig).
  /// @param module  its canonical name
  const Json* quantization(std::string_view module) const;
  /// Tensors that were left out because nothing reads them (`mtp.*`): stored names.
  const std::vector<std::string>& ignored() const { return ignored_; }

 private:
  void add_backbone_file(const std::filesystem::path& path);
  void add(std::string name, const SafetensorsFile& file, const SafetensorsFile::Tensor& tensor);

  std::filesystem::path folder_;
  std::vector<SafetensorsFile> files_;
  std::vector<Entry> entries_;
  std::unordered_map<std::string, std::size_t> index_;
  QuantizationConfig quantization_;
  std::vector<std::string> ignored_;
};

}  // namespace treble
