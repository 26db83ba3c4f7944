#include "media/prepare.h"

#include <doctest/doctest.h>
#include <treble/error.h>

#include <algorithm>

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
    PixelValues values;
    if (name.ends_with("_videos")) {
      for (const Json& path : request.find("videos")->as_array()) {
        const MediaItem item = prepare_frames(Clip(micro / path.as_string()).frames, config, kLimits);
        values.insert(values.end(), item.pixel_values.begin(), item.pixel_values.end());
      }
    } else {
      for (const Json& path : request.find("images")->as_array()) {
        const MediaItem item = prepare_image(read_file(micro / path.as_string()), config, kLimits);
        values.insert(values.end(), item.pixel_values.begin(), item.pixel_values.end());
      }
    }
    check_pixels(values, pixels);
  }
}

}  // namespace
}  // namespace treble::testing
