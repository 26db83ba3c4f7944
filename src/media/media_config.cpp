#include "media/media_config.h"

#include <fmt/format.h>
#include <treble/error.h>
#include <treble/json.h>

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/mapped_file.h"

namespace treble {
namespace {

constexpr std::int64_t kMostPixels = std::int64_t{1} << 40;
constexpr std::int64_t kMostFrames = 1 << 20;

/// One processor's object of a configuration file, with errors that name the file and the key.
class Block {
 public:
  Block(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) fail(fmt::format("is {}, expected an object", object.type_name()));
  }

  /// nullptr if the key is absent or null.
  const Json* find(std::string_view key) const {
    const Json* value = object_.find(key);
    return value && !value->is_null() ? value : nullptr;
  }

  std::int64_t integer(std::string_view key, std::int64_t fallback, std::int64_t most) const {
    const Json* value = find(key);
    if (!value) return fallback;
    long long number = 0;
    if (!value->is_number() || !value->as_int64(number) || number < 1 || number > most)
      fail(fmt::format("\"{}\" is {}, expected an integer from 1 to {}", key, dump_json(*value), most));
    return number;
  }

  double positive(std::string_view key, double fallback) const {
    const Json* value = find(key);
    if (!value) return fallback;
    if (!value->is_number() || !(value->as_double() > 0) || !std::isfinite(value->as_double()))
      fail(fmt::format("\"{}\" is {}, expected a positive number", key, dump_json(*value)));
    return value->as_double();
  }

  bool boolean(std::string_view key, bool fallback) const {
    const Json* value = find(key);
    if (!value) return fallback;
    if (!value->is_bool()) fail(fmt::format("\"{}\" is {}, expected a boolean", key, dump_json(*value)));
    return value->as_bool();
  }

  std::array<double, 3> per_channel(std::string_view key, bool is_positive, std::array<double, 3> fallback) const {
    const Json* value = find(key);
    if (!value) return fallback;
    if (!value->is_array() || value->as_array().size() != 3)
      fail(fmt::format("\"{}\" is {}, expected 3 numbers", key, dump_json(*value)));
    for (std::size_t channel = 0; channel < 3; ++channel) {
      const Json& number = value->as_array()[channel];
      if (!number.is_number() || !std::isfinite(number.as_double()) || (is_positive && !(number.as_double() > 0)))
        fail(fmt::format("\"{}\" is {}, expected 3 {}numbers", key, dump_json(*value), is_positive ? "positive " : ""));
      fallback[channel] = number.as_double();
    }
    return fallback;
  }

  /// A key that only one value is implemented of; absent counts as that value.
  void require(std::string_view key, const Json& implemented) const {
    const Json* value = find(key);
    if (value && *value != implemented)
      fail(fmt::format("\"{}\" is {}, this engine implements {}", key, dump_json(*value), dump_json(implemented)));
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::kCheckpoint, fmt::format("checkpoint: {} {}; is this a Clef release?", where_, what));
  }

  const std::string& where() const { return where_; }

 private:
  const Json& object_;
  std::string where_;
};

/// The two limits stand in "size", in older files beside it.
void read_size(const Block& block, MediaProcessorConfig& config) {
  const auto read = [&config](const Block& from, std::string_view least, std::string_view most) {
    if (!from.find(least) || !from.find(most)) from.fail(fmt::format("lacks \"{}\" or \"{}\"", least, most));
    config.min_pixels = from.integer(least, 0, kMostPixels);
    config.max_pixels = from.integer(most, 0, kMostPixels);
    if (config.min_pixels > config.max_pixels) from.fail(fmt::format("\"{}\" is greater than \"{}\"", least, most));
  };
  if (const Json* size = block.find("size")) {
    read(Block(*size, block.where() + ": size"), "shortest_edge", "longest_edge");
  } else {
    read(block, "min_pixels", "max_pixels");
  }
}

void read_block(const Block& block, MediaProcessorConfig& config) {
  block.require("patch_size", Json::integer(kPatchSize));
  block.require("temporal_patch_size", Json::integer(kTemporalPatchSize));
  block.require("merge_size", Json::integer(kMergeSize));
  block.require("resample", Json::integer(3));
  for (const char* step : {"do_resize", "do_rescale", "do_normalize", "do_convert_rgb"}) block.require(step, true);
  block.require("cap_pixels_per_frame", false);
  read_size(block, config);
  config.rescale_factor = block.positive("rescale_factor", config.rescale_factor);
  config.image_mean = block.per_channel("image_mean", false, config.image_mean);
  config.image_std = block.per_channel("image_std", true, config.image_std);
  config.do_sample_frames = block.boolean("do_sample_frames", config.do_sample_frames);
  config.fps = block.positive("fps", config.fps);
  config.min_frames = block.integer("min_frames", config.min_frames, kMostFrames);
  config.max_frames = block.integer("max_frames", config.max_frames, kMostFrames);
  if (config.min_frames > config.max_frames) block.fail("\"min_frames\" is greater than \"max_frames\"");
}

std::optional<Json> read_if_there(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  return parse_json(read_text_file(path), "checkpoint: " + path.string(), ErrorCode::kCheckpoint);
}

}  // namespace

MediaConfig read_media_config(const std::filesystem::path& folder) {
  MediaConfig config;
  const std::filesystem::path shared_path = folder / "processor_config.json";
  const std::optional<Json> shared = read_if_there(shared_path);
  const auto read = [&](const char* key, const char* own_name, MediaProcessorConfig& into) {
    const Json* block = shared ? shared->find(key) : nullptr;
    if (block) return read_block(Block(*block, fmt::format("{}: {}", shared_path.string(), key)), into);
    const std::filesystem::path own_path = folder / own_name;
    if (const std::optional<Json> own = read_if_there(own_path)) read_block(Block(*own, own_path.string()), into);
  };
  read("image_processor", "preprocessor_config.json", config.image);
  read("video_processor", "video_preprocessor_config.json", config.video);
  return config;
}

}  // namespace treble
