#include "media/prepare.h"

#include <doctest/doctest.h>
#include <treble/error.h>

#include <algorithm>

#include "media/fitted_size.h"
#include "media/testing/expected.h"

namespace treble::testing {
namespace {

const MediaLimits kLimits;

struct Clip {
  std::vector<std::vector<std::byte>> files;
  std::vector<FileBytes> frames;

  explicit Clip(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> paths(std::filesystem::directory_iterator(folder), {});
    std::sort(paths.begin(), paths.end());
    for (const auto& path : paths) files.push_back(read_file(path));
    for (const auto& file : files) frames.emplace_back(file);
  }
};

TEST_CASE("prepare: pixel values of the micro release's requests are the original processor's, bit for bit") {
  const std::filesystem::path micro = data_folder() / "micro";
  const MediaConfig config = read_media_config(micro / "release");
  const Json requests = read_json(micro / "requests.json");
  const Json expected = read_json(micro / "pixel_values.json");
  REQUIRE(expected.as_object().size() == 4);
  for (const auto& [name, pixels] : expected.as_object()) {
    CAPTURE(name);
    const Json& request = *requests.find(name.substr(0, name.find('.')));
    std::vector<float> values;
    if (name.ends_with("_videos")) {
      for (const Json& path : request.find("videos")->as_array()) {
        const MediaItem item = prepare_frames(Clip(micro / path.as_string()).frames, config, kLimits);
        const std::vector<float> pixels_of_item = pixel_values(item);
        values.insert(values.end(), pixels_of_item.begin(), pixels_of_item.end());
      }
    } else {
      for (const Json& path : request.find("images")->as_array()) {
        const MediaItem item = prepare_image(read_file(micro / path.as_string()), config, kLimits);
        const std::vector<float> pixels_of_item = pixel_values(item);
        values.insert(values.end(), pixels_of_item.begin(), pixels_of_item.end());
      }
    }
    check_pixels(values, pixels);
  }
}

/// The limits that make_media_cases.py reads all but the largest pictures with.
MediaConfig config_of(const Json& image) {
  MediaConfig config = read_media_config(data_folder() / "micro" / "release");
  if (!image.find("release_limits")->as_bool()) {
    config.image.min_pixels = 4096;
    config.image.max_pixels = 65536;
  }
  return config;
}

void check_grid(const MediaItem& item, const Json& expected) {
  const Json grid(Json::Array{Json::integer(item.grid_t), Json::integer(item.grid_h), Json::integer(item.grid_w)});
  CHECK(grid == *expected.find("grid"));
}

TEST_CASE("prepare: pictures of every kind and odd sizes have the original processor's grids and pixel values") {
  const Json expected = read_json(data_folder() / "media" / "expected.json");
  for (const auto& [name, image] : expected.find("images")->as_object()) {
    CAPTURE(name);
    const MediaItem item = prepare_image(read_file(data_folder() / "media" / name), config_of(image), kLimits);
    check_grid(item, image);
    CHECK(item.timestamps.empty());
    // Two levels of difference between decoders, a little more behind a filter with negative taps.
    const bool is_lossy = name.ends_with(".jpg") || name.starts_with("lossy");
    check_pixels(pixel_values(item), *image.find("pixel_values"),
                 is_lossy ? Tolerance{.largest = 3 / 127.5, .is_exact = false} : Tolerance{.largest = 1e-6});
  }
}

template <typename T>
std::optional<T> number(const Json& object, std::string_view key) {
  const Json* value = object.find(key);
  if (!value || value->is_null()) return std::nullopt;
  return static_cast<T>(value->as_double());
}

VideoOptions options_of(const Json& clip) {
  const Json& given = *clip.find("options");
  VideoOptions options;
  options.source_fps = number<double>(clip, "source_fps");
  options.fps = number<double>(given, "fps");
  options.num_frames = number<std::int64_t>(given, "num_frames");
  if (const Json* sample = given.find("do_sample_frames")) options.do_sample_frames = sample->as_bool();
  if (const Json* size = given.find("size")) {
    options.min_pixels = number<std::int64_t>(*size, "shortest_edge");
    options.max_pixels = number<std::int64_t>(*size, "longest_edge");
  }
  return options;
}

TEST_CASE("prepare: clips of every rate and with every option have the original processor's timestamps and values") {
  const std::filesystem::path micro = data_folder() / "micro";
  const MediaConfig config = read_media_config(micro / "release");
  const Json expected = read_json(data_folder() / "media" / "expected.json");
  for (const Json& clip : expected.find("clips")->as_array()) {
    CAPTURE(clip.find("name")->as_string());
    const Clip pictures(micro / "media" / clip.find("folder")->as_string());
    const auto count = static_cast<std::size_t>(clip.find("frames")->as_double());
    const MediaItem item = prepare_frames(std::span(pictures.frames).first(count), config, kLimits, options_of(clip));
    CHECK(item.kind == MediaKind::kVideo);
    check_grid(item, clip);
    const Json::Array& seconds = clip.find("timestamps")->as_array();
    REQUIRE(seconds.size() == item.timestamps.size());
    for (std::size_t t = 0; t < seconds.size(); ++t) CHECK(item.timestamps[t] == seconds[t].as_double());
    check_pixels(pixel_values(item), *clip.find("pixel_values"), {.largest = 1e-6});
  }
}

/// The message of the refusal; "" if there was none.
template <typename Prepare>
std::string refusal(const Prepare& prepare) {
  try {
    prepare();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kRequest);
    return error.what();
  }
  return "";
}

TEST_CASE("prepare: clips that cannot be read say why") {
  const std::filesystem::path micro = data_folder() / "micro";
  const MediaConfig config = read_media_config(micro / "release");
  const Clip clip(micro / "media" / "video0"), other(micro / "media" / "video1");
  const auto message = [&](std::vector<FileBytes> frames, const VideoOptions& options = {},
                           const MediaLimits& limits = MediaLimits()) {
    return refusal([&] { prepare_frames(frames, config, limits, options); });
  };
  CHECK(message({}).find("has no frames") != std::string::npos);
  CHECK(message({clip.frames[0]}).find("has 1 frame; 2 are the fewest") != std::string::npos);
  CHECK(message({clip.frames[0], other.frames[1]}).find("kept frame 1 of a clip is 160 x 128") != std::string::npos);
  CHECK(message({clip.frames[0], clip.frames[1].first(100)}).find("(frame 1 of a clip)") != std::string::npos);
  CHECK(message(clip.frames, {.fps = 2, .num_frames = 4}).find("leave one out") != std::string::npos);
  CHECK(message(clip.frames, {.fps = 0}).find("fps is 0") != std::string::npos);
  CHECK(message(clip.frames, {.num_frames = 1}).find("2 are the fewest") != std::string::npos);
  CHECK(message(clip.frames, {.num_frames = -1}).find("num_frames is -1") != std::string::npos);
  CHECK(message(clip.frames, {.source_fps = -1}).find("frame rate is -1") != std::string::npos);
  CHECK(message(clip.frames, {.min_pixels = 30000000}).find("more than max_pixels") != std::string::npos);
  CHECK(message(clip.frames, {.min_pixels = 90000000, .max_pixels = 90000000}, {.max_enlarged_pixels = 1LL << 40})
            .find("the limit is 33554432 pixels") != std::string::npos);
  CHECK(message(clip.frames, {}, {.max_frames = 7}).find("8 frames, the limit is 7") != std::string::npos);
  CHECK(message(clip.frames, {}, {.max_video_bytes = 100}).find("the limit is 100") != std::string::npos);
}

TEST_CASE("prepare: a small picture or clip is not enlarged to the cost of a large one") {
  const std::filesystem::path micro = data_folder() / "micro";
  const MediaConfig config = read_media_config(micro / "release");
  const std::vector<std::byte> picture = read_file(data_folder() / "media" / "rgb8.png");  // 37 x 29 pixels
  const auto grid = [&](std::int64_t min_pixels) {
    const MediaItem item =
        prepare_image(picture, config, kLimits, {.min_pixels = min_pixels, .max_pixels = std::int64_t{1} << 40});
    return item.grid_h * item.grid_w;
  };
  CHECK(grid(900000) > 900000 / 256);
  CHECK(refusal([&] { grid(1200000); }).find("the limit is 4 times their own pixels, or 1048576 in all") !=
        std::string::npos);
  CHECK(refusal([&] { grid(30000000); }).find("give a lower min_pixels") != std::string::npos);
  // A large one may still become four times as large.
  const std::vector<std::byte> large = read_file(data_folder() / "media" / "large_4000_by_3000.png");
  CHECK(prepare_image(large, config, kLimits, {.min_pixels = 14000000}).num_tokens() > 14000000 / 1024);

  const Clip clip(micro / "media" / "video0");
  const auto frames = [&](const VideoOptions& options) { prepare_frames(clip.frames, config, kLimits, options); };
  CHECK(refusal([&] { frames({.min_pixels = 20000000}); }).find("4 frame(s) would be enlarged") != std::string::npos);
  CHECK(refusal([&] { frames({.num_frames = 1000}); }).find("num_frames") != std::string::npos);
  CHECK(refusal([&] { frames({.num_frames = 12}); }) == "");
}

TEST_CASE("prepare: one side of an image may be 200 times the other, and no more") {
  const MediaConfig config = read_media_config(data_folder() / "micro" / "release");
  CHECK(fitted_image_size({10, 2000}, config.image) == PictureSize{32, 3648});
  CHECK(refusal([&] { fitted_image_size({1, 2000}, config.image); }).find("at most 200 times") != std::string::npos);
  CHECK(refusal([&] { fitted_image_size({2001, 10}, config.image); }).find("10 x 2001") != std::string::npos);
  CHECK(refusal([&] {
          fitted_frame_size({8, 2048}, 4, config.video);
        }).find("a clip's frames are 2048 x 8 pixels") != std::string::npos);
}

TEST_CASE("prepare: digests are equal if and only if content and options are") {
  const MediaConfig config;
  const std::string a = "one file", b = "another";
  const auto bytes = [](const std::string& text) { return std::as_bytes(std::span(text)); };
  CHECK(image_digest(bytes(a), config) == image_digest(bytes(a), config));
  CHECK(image_digest(bytes(a), config) != image_digest(bytes(b), config));
  CHECK(image_digest(bytes(a), config) != image_digest(bytes(a), config, {.max_pixels = 70000}));
  MediaConfig other;
  other.image.image_mean[1] = 0.4;
  CHECK(image_digest(bytes(a), config) != image_digest(bytes(a), other));
  const std::vector<FileBytes> two = {bytes(a), bytes(b)}, joined = {bytes(a)};
  CHECK(frames_digest(two, config) != frames_digest(joined, config));
  CHECK(frames_digest(two, config) != frames_digest(two, config, {.fps = 2}));
  CHECK(frames_digest(joined, config) != image_digest(bytes(a), config));
  CHECK(video_digest(bytes(a), config) == video_digest(bytes(a), config));
  CHECK(video_digest(bytes(a), config) != video_digest(bytes(a), config, {.num_frames = 4}));
  CHECK(video_digest(bytes(a), config) != frames_digest(joined, config));
}

}  // namespace
}  // namespace treble::testing
