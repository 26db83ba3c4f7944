#include "media/media_config.h"

#include <fmt/format.h>
#include <treble/error.h>
#include <treble/json.h>

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/config_section.h"

namespace treble {
namespace {

constexpr std::int64_t kMostPixels = std::int64_t{1} << 40;
constexpr std::int64_t kMostFrames = 1 << 20;

std::array<double, 3> per_channel(const ConfigSection& block, std::string_view key, bool is_positive,
                                  std::array<double, 3> fallback) {
  const Json* value = block.find(key);
  if (!value) return fallback;
  if (!value->is_array() || value->as_array().size() != 3)
    block.fail(fmt::format("\"{}\" is {}, expected 3 numbers", key, dump_json(*value)));
  for (std::size_t channel = 0; channel < 3; ++channel) {
    const Json& number = value->as_array()[channel];
    if (!number.is_number() || !std::isfinite(number.as_double()) || (is_positive && !(number.as_double() > 0)))
      block.fail(
          fmt::format("\"{}\" is {}, expected 3 {}numbers", key, dump_json(*value), is_positive ? "positive " : ""));
    fallback[channel] = number.as_double();
  }
  return fallback;
}

/// The two limits stand in "size", in older files beside it.
void read_size(const ConfigSection& block, MediaProcessorConfig& config) {
  const auto read = [&config](const ConfigSection& from, std::string_view least, std::string_view most) {
    if (!from.find(least) || !from.find(most)) from.fail(fmt::format("lacks \"{}\" or \"{}\"", least, most));
    config.min_pixels = from.positive(least, 0, kMostPixels);
    config.max_pixels = from.positive(most, 0, kMostPixels);
    if (config.min_pixels > config.max_pixels) from.fail(fmt::format("\"{}\" is greater than \"{}\"", least, most));
  };
  if (block.find("size")) {
    read(block.section("size"), "shortest_edge", "longest_edge");
  } else {
    read(block, "min_pixels", "max_pixels");
  }
}

void read_block(const ConfigSection& block, MediaProcessorConfig& config) {
  block.require("patch_size", Json::integer(kPatchSize));
  block.require("temporal_patch_size", Json::integer(kTemporalPatchSize));
  block.require("merge_size", Json::integer(kMergeSize));
  block.require("resample", Json::integer(3));
  for (const char* step : {"do_resize", "do_rescale", "do_normalize", "do_convert_rgb"}) block.require(step, true);
  block.require("cap_pixels_per_frame", false);
  read_size(block, config);
  config.rescale_factor = block.number("rescale_factor", config.rescale_factor);
  config.image_mean = per_channel(block, "image_mean", false, config.image_mean);
  config.image_std = per_channel(block, "image_std", true, config.image_std);
  config.do_sample_frames = block.boolean("do_sample_frames", config.do_sample_frames);
  config.fps = block.number("fps", config.fps);
  config.min_frames = block.positive("min_frames", config.min_frames, kMostFrames);
  config.max_frames = block.positive("max_frames", config.max_frames, kMostFrames);
  if (config.min_frames > config.max_frames) block.fail("\"min_frames\" is greater than \"max_frames\"");
}

[[noreturn]] void fail_without(const std::string& what_lacks, std::string_view media) {
  throw Error(ErrorCode::kCheckpoint,
              fmt::format("{}: how {} are prepared is not known; copy the file from the release", what_lacks, media));
}

std::optional<Json> read_if_there(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::status(path, error).type() == std::filesystem::file_type::not_found) return std::nullopt;
  return read_config_file(path);
}

}  // namespace

MediaConfig read_media_config(const std::filesystem::path& folder) {
  MediaConfig config;
  const std::filesystem::path shared_path = folder / "processor_config.json";
  const std::optional<Json> shared = read_if_there(shared_path);
  const auto read = [&](const char* key, const char* own_name, MediaProcessorConfig& into, std::string& lacks) {
    const Json* block = shared ? shared->find(key) : nullptr;
    if (block) return read_block(ConfigSection(*block, fmt::format("{}: {}", shared_path.string(), key)), into);
    const std::filesystem::path own_path = folder / own_name;
    if (const std::optional<Json> own = read_if_there(own_path))
      return read_block(ConfigSection(*own, own_path.string()), into);
    lacks = fmt::format("{} {}, and there is no {} beside it", shared_path.string(),
                        shared ? fmt::format("lacks \"{}\"", key) : "is missing", own_name);
  };
  read("image_processor", "preprocessor_config.json", config.image, config.lacks_image);
  read("video_processor", "video_preprocessor_config.json", config.video, config.lacks_video);
  return config;
}

void require_image_block(const MediaConfig& config) {
  if (!config.lacks_image.empty()) fail_without(config.lacks_image, "images");
}

void require_video_block(const MediaConfig& config) {
  if (!config.lacks_video.empty()) fail_without(config.lacks_video, "videos");
}

}  // namespace treble
