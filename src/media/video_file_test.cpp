#include "media/video_file.h"

#include <doctest/doctest.h>
#include <treble/error.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <string>

#include "media/prepare.h"
#include "media/testing/expected.h"

namespace treble::testing {
namespace {

const MediaLimits kLimits;

std::vector<std::byte> clip(std::string_view name) {
  return read_file(data_folder() / "media" / name);
}

/// The message of the refusal; "" if the clip was read.
std::string refusal(std::span<const std::byte> file, const MediaLimits& limits = kLimits) {
  try {
    prepare_video(file, MediaConfig(), limits);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kRequest);
    return error.what();
  }
  return "";
}

template <typename T>
void read_option(const Json& options, const char* name, std::optional<T>& option) {
  if (const Json* value = options.find(name)) option = static_cast<T>(value->as_double());
}

TEST_CASE("video_file: clips of every container and codec have the frames, rates and pixels of the original stack") {
  const MediaConfig config = read_media_config(data_folder() / "micro" / "release");
  const Json expected = read_json(data_folder() / "media" / "expected_videos.json");
  for (const Json& clip_case : expected.as_array()) {
    const std::string& name = clip_case.find("file")->as_string();
    CAPTURE(name);
    const std::vector<std::byte> file = clip(name);
    const VideoFile video(file, kLimits);
    CHECK(static_cast<double>(video.num_frames()) == clip_case.find("num_frames")->as_double());
    CHECK(video.fps() == doctest::Approx(clip_case.find("fps")->as_double()).epsilon(1e-9));
    if (!clip_case.find("grid")) continue;

    VideoOptions options;
    read_option(*clip_case.find("options"), "fps", options.fps);
    read_option(*clip_case.find("options"), "num_frames", options.num_frames);
    if (const Json* size = clip_case.find("options")->find("size")) {
      read_option(*size, "shortest_edge", options.min_pixels);
      read_option(*size, "longest_edge", options.max_pixels);
    }
    const MediaItem item = prepare_video(file, config, kLimits, options);
    const Json::Array& seconds = clip_case.find("timestamps")->as_array();
    REQUIRE(item.timestamps.size() == seconds.size());
    for (std::size_t t = 0; t < seconds.size(); ++t)
      CHECK(item.timestamps[t] == doctest::Approx(seconds[t].as_double()).epsilon(1e-9));
    // The conversion to RGB may differ by two levels from one build of libswscale to another; a wrong frame differs by
    // a hundred.
    check_pixels(pixel_values(item), *clip_case.find("pixel_values"), {.largest = 2.01 / 127.5, .is_exact = false});
  }
}

TEST_CASE("video_file: a frame is the same whether it is decoded alone, after a seek, or with all before it") {
  for (const char* name :
       {"h264_25.mp4", "h264_open_groups.mp4", "h264.mkv", "mpeg4.mp4", "vp9.webm", "animation.gif"}) {
    CAPTURE(name);
    const std::vector<std::byte> file = clip(name);
    VideoFile video(file, kLimits);
    std::vector<std::int64_t> all;
    for (std::int64_t index = 0; index < video.num_frames(); ++index) all.push_back(index);
    std::vector<std::string> digests;
    const auto digest = [](const Picture& picture) {
      return sha256(picture.rgb.data(), static_cast<std::size_t>(picture.height * picture.row_bytes()));
    };
    video.read(all, [&](std::size_t, const Picture& picture) { digests.push_back(digest(picture)); });
    for (const std::int64_t index : all) {
      CAPTURE(index);
      const std::int64_t some[] = {index / 3, index, index};
      VideoFile fresh(file, kLimits);
      fresh.read(std::span(some).subspan(1), [&](std::size_t, const Picture& picture) {
        CHECK(digest(picture) == digests[static_cast<std::size_t>(index)]);
      });
      video.read(some, [&](std::size_t place, const Picture& picture) {
        CHECK(digest(picture) == digests[static_cast<std::size_t>(some[place])]);
      });
    }
  }
}

TEST_CASE("video_file: an animated GIF's frames are what they are as pictures") {
  const std::vector<std::byte> file = clip("animated.gif");
  const Picture first = decode_picture(file, kLimits);
  VideoFile video(file, kLimits);
  CHECK(video.num_frames() == 3);
  CHECK(video.fps() == doctest::Approx(10));
  const std::int64_t index = 0;
  video.read(std::span(&index, 1), [&](std::size_t, const Picture& picture) {
    REQUIRE(picture.height == first.height);
    REQUIRE(picture.width == first.width);
    CHECK(std::memcmp(picture.rgb.data(), first.rgb.data(), static_cast<std::size_t>(3 * first.height * first.width)) ==
          0);
  });
}

TEST_CASE("video_file: a clip that cannot be read says why") {
  CHECK(refusal(clip("one_frame.mp4")).find("1 frame; 2 are the fewest") != std::string::npos);
  CHECK(refusal({}).find("no MP4, MOV, WebM, Matroska or GIF") != std::string::npos);
  CHECK(refusal(clip("rgb8.png")).find("no MP4, MOV, WebM, Matroska or GIF") != std::string::npos);
  CHECK(refusal(clip("no_frames.gif")).find("video file") != std::string::npos);
  const std::string_view playlist = "#EXTM3U\n#EXT-X-STREAM-INF:\nfile:///etc/passwd\n";
  CHECK(refusal(std::as_bytes(std::span(playlist))).find("by its first bytes") != std::string::npos);

  const std::vector<std::byte> file = clip("h264_25.mp4");
  CHECK(refusal(file, {.max_pixels = 48 * 64 - 1}).find("64 x 48 pixels large, the limit is 3071") !=
        std::string::npos);
  CHECK(refusal(file, {.max_video_bytes = 100}).find("the limit is 100") != std::string::npos);
  CHECK(refusal(file, {.max_frames = 59}).find("more than 59 frames") != std::string::npos);
}

/// Every seed that is read whole.
std::vector<std::string> whole_clips() {
  std::vector<std::string> names;
  const Json expected = read_json(data_folder() / "media" / "expected_videos.json");
  for (const Json& clip_case : expected.as_array()) {
    const std::string& name = clip_case.find("file")->as_string();
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

TEST_CASE("video_file: a clip that is cut off anywhere is refused") {
  for (const std::string& name : whole_clips()) {
    CAPTURE(name);
    const std::vector<std::byte> file = clip(name);
    std::vector<std::size_t> sizes = {file.size() - 1, file.size() * 99 / 100, file.size() * 9 / 10, file.size() / 2};
    for (std::size_t size = 0; size < file.size(); size += 1 + file.size() / 40) sizes.push_back(size);
    for (const std::size_t size : sizes) {
      CAPTURE(size);
      CHECK(refusal(std::span(file).first(size)).find("media: ") == 0);
    }
  }
}

TEST_CASE("video_file: a clip that lacks bytes in the middle is refused") {
  for (const std::string& name : whole_clips()) {
    CAPTURE(name);
    const std::vector<std::byte> file = clip(name);
    for (const std::size_t part : {3, 5, 7, 9}) {
      CAPTURE(part);
      std::vector<std::byte> holed = file;
      const auto begin = holed.begin() + static_cast<std::ptrdiff_t>(holed.size() * part / 10);
      holed.erase(begin, begin + std::min<std::ptrdiff_t>(300, holed.end() - begin));
      CHECK(refusal(holed).find("media: ") == 0);
    }
  }
}

TEST_CASE("video_file: a GIF with a hole in its pictures' data or without its trailer is refused") {
  const std::vector<std::byte> file = clip("animation.gif");
  for (std::size_t at = 1000; at + 40 < file.size(); at += 2900) {
    CAPTURE(at);
    std::vector<std::byte> holed = file;
    std::fill_n(holed.begin() + static_cast<std::ptrdiff_t>(at), 40, std::byte{0});
    CHECK(refusal(holed).find("is damaged") != std::string::npos);
  }
  CHECK(refusal(std::span(file).first(file.size() - 1)).find("is damaged: picture 12 of a GIF") != std::string::npos);
}

/// vp9.webm as a streaming muxer writes it: the sizes of its segment and its only cluster are not known.
std::vector<std::byte> streamed_webm() {
  std::vector<std::byte> file = clip("vp9.webm");
  constexpr std::size_t kSegmentSize = 40, kClusterSize = 428;
  REQUIRE(file[kSegmentSize] == std::byte{0x01});
  REQUIRE((file[kClusterSize] & std::byte{0xc0}) == std::byte{0x40});
  std::fill_n(file.begin() + kSegmentSize + 1, 7, std::byte{0xff});
  file[kClusterSize] = std::byte{0x7f};
  file[kClusterSize + 1] = std::byte{0xff};
  return file;
}

TEST_CASE("video_file: a WebM file of a streaming muxer, which does not know its sizes, is read; half a frame is not") {
  const std::vector<std::byte> file = streamed_webm(), original = clip("vp9.webm");
  const std::int64_t num_frames = VideoFile(original, kLimits).num_frames();
  CHECK(VideoFile(file, kLimits).num_frames() == num_frames);
  CHECK(prepare_video(file, MediaConfig(), kLimits).levels == prepare_video(original, MediaConfig(), kLimits).levels);
  constexpr std::size_t kCuesBegin = 4781;
  CHECK(VideoFile(std::span(file).first(kCuesBegin), kLimits).num_frames() == num_frames);
  CHECK(refusal(std::span(file).first(kCuesBegin - 1)).find("a part of the file is missing") != std::string::npos);
}

TEST_CASE("video_file: Matroska's checksums are checked, and its frames must belong to a track") {
  std::vector<std::byte> changed = clip("h264.mkv");
  changed[3000] ^= std::byte{1};
  CHECK(refusal(changed).find("does not have its checksum") != std::string::npos);

  std::vector<std::byte> lost = clip("vp9.webm");
  std::size_t block = 430;  // the cluster's first elements
  while (lost[block] != std::byte{0xa3}) ++block;
  const std::size_t track =
      block + 1 + static_cast<std::size_t>(std::countl_zero(std::to_integer<std::uint8_t>(lost[block + 1]))) + 1;
  REQUIRE(lost[track] == std::byte{0x81});
  lost[track] = std::byte{0x85};
  CHECK(refusal(lost).find("belongs to no track") != std::string::npos);
}

TEST_CASE("video_file: a clip whose bytes are changed anywhere is read or refused, and nothing else happens") {
  for (const char* name :
       {"h264_25.mp4", "h264_ntsc.mov", "h264.mkv", "vp8.webm", "vp9.webm", "mpeg4.mp4", "animation.gif"}) {
    CAPTURE(name);
    const std::vector<std::byte> file = clip(name);
    std::mt19937 random(7);
    for (int round = 0; round < 25; ++round) {
      std::vector<std::byte> changed = file;
      for (int change = 0; change < 1 + round % 5; ++change)
        changed[random() % changed.size()] = static_cast<std::byte>(random());
      const std::string message = refusal(changed);
      if (!message.empty()) CHECK(message.find("media: ") == 0);
    }
  }
}

TEST_CASE("video_file: a stream that is damaged in the middle is refused, not answered with made-up frames") {
  std::vector<std::byte> file = clip("h264_25.mp4");
  // The pictures' data begin behind "mdat"; the moov box with its index follows them.
  std::size_t data = 0;
  while (std::memcmp(file.data() + data, "mdat", 4) != 0) ++data;
  for (std::size_t at = data + 3000; at < data + 3400; ++at) file[at] = static_cast<std::byte>(at * 37);
  CHECK(refusal(file).find("is damaged") != std::string::npos);
}

}  // namespace
}  // namespace treble::testing
