#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace treble {

inline constexpr const char* kSingleFile = "model.safetensors";
inline constexpr const char* kIndexFile = "model.safetensors.index.json";
inline constexpr const char* kHeadFile = "joint_head.safetensors";

/// What `model.safetensors.index.json` says: {"weight_map": {tensor: shard, ...}, ...}.
struct ShardIndex {
  std::vector<std::string> shards;                              ///< sorted, each once: file names in the same folder
  std::vector<std::pair<std::string, std::string>> weight_map;  ///< stored tensor name, shard; in the file's order
};

/// @throws Error kCheckpoint naming the file: no JSON, no weight_map, a tensor twice, a shard outside the folder
ShardIndex read_shard_index(const std::filesystem::path& path);

}  // namespace treble
