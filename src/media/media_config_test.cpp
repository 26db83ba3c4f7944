#include "media/media_config.h"

#include <doctest/doctest.h>
#include <treble/error.h>

#include <string>

#include "base/testing/temp_folder.h"
#include "media/testing/expected.h"

namespace treble::testing {
namespace {

std::string refusal(const TempFolder& folder) {
  try {
    read_media_config(folder.path());
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kCheckpoint);
    return error.what();
  }
  return "";
}

TEST_CASE("media_config: one file with two blocks, as Clef ships it") {
  const MediaConfig config = read_media_config(data_folder() / "micro" / "release");
  CHECK(config.image.min_pixels == 65536);
  CHECK(config.image.max_pixels == 16777216);
  CHECK(config.video.min_pixels == 4096);
  CHECK(config.video.max_pixels == 25165824);
  CHECK(config.video.fps == 2);
  CHECK(config.video.min_frames == 4);
  CHECK(config.video.max_frames == 768);
}

TEST_CASE("media_config: without a block, media of its kind are refused with the files' names; text needs none") {
  const TempFolder folder;
  MediaConfig config = read_media_config(folder.path());
  const std::string missing = (folder.path() / "processor_config.json").string() + " is missing";
  CHECK_THROWS_WITH_AS(require_image_block(config), doctest::Contains(missing.c_str()), Error);
  CHECK_THROWS_WITH_AS(require_video_block(config), doctest::Contains("no video_preprocessor_config.json"), Error);

  folder.write("processor_config.json", R"({"image_processor": {"min_pixels": 1024, "max_pixels": 2048}})");
  config = read_media_config(folder.path());
  CHECK_NOTHROW(require_image_block(config));
  CHECK_THROWS_WITH_AS(require_video_block(config), doctest::Contains("lacks \"video_processor\""), Error);
}

TEST_CASE("media_config: two files, as the base models ship it") {
  const TempFolder folder;
  folder.write("preprocessor_config.json", R"({"size": {"shortest_edge": 1024, "longest_edge": 2048}})");
  folder.write("video_preprocessor_config.json", R"({"min_pixels": 4096, "max_pixels": 8192, "fps": 1.5})");
  const MediaConfig config = read_media_config(folder.path());
  CHECK(config.image.min_pixels == 1024);
  CHECK(config.image.max_pixels == 2048);
  CHECK(config.video.max_pixels == 8192);
  CHECK(config.video.fps == 1.5);
  CHECK_NOTHROW(require_image_block(config));
  CHECK_NOTHROW(require_video_block(config));
}

TEST_CASE("media_config: what is not implemented or makes no sense is refused by name") {
  const TempFolder folder;
  const auto message = [&folder](const std::string& members) {
    folder.write("processor_config.json", R"({"image_processor": {)" + members + "}}");
    return refusal(folder);
  };
  const std::string size = R"("size": {"shortest_edge": 1024, "longest_edge": 2048})";
  CHECK(message(size) == "");
  CHECK(message(size + R"(, "patch_size": 14)").find("\"patch_size\" is 14, this engine implements 16") !=
        std::string::npos);
  CHECK(message(size + R"(, "resample": 2)").find("\"resample\" is 2") != std::string::npos);
  CHECK(message(size + R"(, "do_normalize": false)").find("\"do_normalize\" is false") != std::string::npos);
  CHECK(message(size + R"(, "image_std": [0.5, 0, 0.5])").find("expected 3 positive numbers") != std::string::npos);
  CHECK(message(size + R"(, "rescale_factor": "x")").find("\"rescale_factor\"") != std::string::npos);
  CHECK(message(R"("size": {"shortest_edge": 4096, "longest_edge": 2048})").find("is greater than") !=
        std::string::npos);
  CHECK(message(R"("size": {"height": 4096})").find("lacks \"shortest_edge\"") != std::string::npos);
  CHECK(message("").find("lacks \"min_pixels\"") != std::string::npos);
  CHECK(message("]").find("processor_config.json") != std::string::npos);
}

}  // namespace
}  // namespace treble::testing
