#include "checkpoint/shard_index.h"

#include <fmt/format.h>
#include <treble/error.h>
#include <treble/json.h>

#include <set>
#include <string_view>
#include <unordered_set>

#include "base/mapped_file.h"
#include "checkpoint/tensor_names.h"

namespace treble {
namespace {

/// A name that stays inside the folder on every system.
bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find_first_of(std::string_view("/\\:\0", 4)) == name.npos;
}

}  // namespace

ShardIndex read_shard_index(const std::filesystem::path& path) {
  const std::string what = fmt::format("checkpoint: {}", path.string());
  const auto fail = [&](std::string_view problem) {
    throw Error(ErrorCode::kCheckpoint, fmt::format("{}{}", what, problem));
  };
  const Json json = parse_json(read_text_file(path), what, ErrorCode::kCheckpoint);
  const Json* weight_map = json.find("weight_map");
  if (!weight_map || !weight_map->is_object() || weight_map->as_object().empty())
    fail(" has no weight_map, expected {\"weight_map\": {tensor: file, ...}}; download it again");

  ShardIndex index;
  std::set<std::string> shards;
  std::unordered_set<std::string_view> names;
  for (const auto& [name, file] : weight_map->as_object()) {
    if (!file.is_string())
      fail(fmt::format(": {} is {}, expected the name of a shard; download it again", quote_name(name),
                       file.type_name()));
    if (!is_plain_file_name(file.as_string()))
      fail(fmt::format(": {} lies in {}, expected the plain name of a file in the same folder; download it again",
                       quote_name(name), quote_name(file.as_string())));
    if (!names.insert(name).second)
      fail(fmt::format(": {} is in the weight_map twice, expected once; download it again", quote_name(name)));
    shards.insert(file.as_string());
    index.weight_map.emplace_back(name, file.as_string());
  }
  index.shards.assign(shards.begin(), shards.end());
  return index;
}

}  // namespace treble
