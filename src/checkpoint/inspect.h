#pragma once

#include <treble/json.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace treble {

/// What a release folder holds and what it lacks. Reads headers, configuration and the short descriptions of quantised
/// modules, no weights, so it is quick for any size.
struct ReleaseSummary {
  struct File {
    std::string name;
    std::uint64_t bytes = 0;
    std::string role;  ///< "weights", "head", "config", "text", "media", "other", "unknown"
  };

  /// The modules of one kind: "embedding", "lm_head", "text attention", "text delta net", "text mlp", "text norms",
  /// "vision", "head", "other".
  struct Group {
    std::string name;
    std::int64_t tensors = 0;
    std::int64_t parameters = 0;                  ///< of the unquantised model: scales and maps are no parameters
    std::uint64_t bytes = 0;                      ///< as stored, scales and maps included
    std::map<std::string, std::int64_t> dtypes;   ///< stored dtype -> tensors
    std::map<std::string, std::int64_t> formats;  ///< storage format -> modules
  };

  /// Modules that differ in their layer's number alone: "text.layers.{0..2}.mlp.up_proj".
  struct Module {
    std::string name;
    std::string group;
    std::string format;               ///< storage_format.h
    std::vector<std::int64_t> shape;  ///< of one weight, unpacked
    std::int64_t copies = 0;
    std::int64_t parameters = 0;  ///< of all copies
    std::uint64_t bytes = 0;      ///< of all copies
  };

  std::string folder;
  std::vector<File> files;   ///< by name
  Json::Object config;       ///< facts of config.json under the names that they have there
  Json::Object head_config;  ///< joint_head_config.json
  std::vector<Group> groups;
  std::vector<Module> modules;

  std::int64_t backbone_parameters = 0;
  std::int64_t head_parameters = 0;
  std::string known_size;  ///< "27B (Clef)" if backbone_parameters is exactly that of a published model, or empty

  std::uint64_t weight_bytes = 0;                    ///< memory for the weights as stored
  std::uint64_t activation_bytes_per_1k_tokens = 0;  ///< see activation_bytes_per_token(); 0 without a valid config

  std::vector<std::string> missing_files;
  std::vector<std::string> unknown_files;
  std::vector<std::string> missing_tensors;  ///< implied by the two configurations; canonical names
  std::vector<std::string> unknown_tensors;  ///< not implied by them; canonical names
  std::vector<std::string> ignored_tensors;  ///< nothing reads them (`mtp.*`); stored names
  std::vector<std::string> problems;         ///< messages; a file that has one is left out of the figures

  /// Nothing missing and no problem. Unknown tensors of a module count as a problem too, unknown files do not.
  bool is_complete() const {
    return missing_files.empty() && missing_tensors.empty() && unknown_tensors.empty() && problems.empty();
  }
};

/// Summarises a folder; what is broken or missing in it is listed, not thrown.
/// @throws Error kCheckpoint if there is no such folder
ReleaseSummary inspect_release(const std::filesystem::path& folder);

/// An estimate of the memory that one token needs during a pass: one layer's values at a time, all in f32:
///     4 bytes * (3 hidden_size + max(2 intermediate_size, attention, delta net) + head memory)
///     attention   4 num_attention_heads head_dim + 2 num_key_value_heads head_dim       (query, gate, mix, product)
///     delta net   2 conv_dim + 2 value_dim                                         (before and after the convolution)
///     head memory 3 width                                                             (memory, one layer's key, value)
/// @throws Error kCheckpoint if a size is missing or makes no sense
std::uint64_t activation_bytes_per_token(const Json& config, const Json& head_config);

/// Every tensor of a folder's safetensors files with its stored name, dtype and shape, under the module that it belongs
/// to, and how that module is read and why: what a report of a bug needs. Of the data only the short JSON descriptions
/// of quantised modules are shown. Files that cannot be read are named with what is wrong with them.
/// @throws Error kCheckpoint if there is no such folder
std::string dump_layout(const std::filesystem::path& folder);

Json to_json(const ReleaseSummary& summary);

/// For people: aligned columns, layers of the same form in one row.
std::string to_table(const ReleaseSummary& summary);

/// Names that differ in their first number alone as one: "text.layers.{0..2,5}.norm.weight", and
/// "text.layers.{3,7,...,63}.self_attn.q_proj" where many ranges repeat regularly. Sorted.
std::vector<std::string> collapse_layers(const std::vector<std::string>& names);

}  // namespace treble
