#include "record/media_options.h"

#include <doctest/doctest.h>
#include <treble/error.h>

#include <string>

namespace treble {
namespace {

MediaOptions read(const char* json) {
  return read_media_options(parse_json(json, "test", ErrorCode::kInternal));
}

std::string error_of(const char* json) {
  try {
    read(json);
    return "";
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kRequest);
    return error.what();
  }
}

TEST_CASE("media_options: none and null members change nothing") {
  CHECK(!read_media_options(Json()).image.max_pixels);
  const MediaOptions options = read(R"({"fps": null, "max_pixels": null})");
  CHECK(!options.video.fps);
  CHECK(!options.image.max_pixels);
}

TEST_CASE("media_options: pixel limits count for images and videos, the others for videos") {
  const MediaOptions options =
      read(R"({"min_pixels": 1024, "max_pixels": 4096, "fps": 0.5, "do_sample_frames": false, "num_frames": 6})");
  CHECK(options.image.min_pixels == 1024);
  CHECK(options.image.max_pixels == 4096);
  CHECK(options.video.min_pixels == 1024);
  CHECK(options.video.max_pixels == 4096);
  CHECK(options.video.fps == 0.5);
  CHECK(options.video.num_frames == 6);
  CHECK(options.video.do_sample_frames == false);
}

TEST_CASE("media_options: an object of its own counts for images or for videos only") {
  const MediaOptions options = read(R"({"images_kwargs": {"max_pixels": 1}, "videos_kwargs": {"max_pixels": 2}})");
  CHECK(options.image.max_pixels == 1);
  CHECK(options.video.max_pixels == 2);
}

TEST_CASE("media_options: what is unknown or of another type is refused, since it would change nothing in silence") {
  CHECK(error_of(R"({"size": 1})") ==
        R"(request: media_kwargs has "size", expected "min_pixels", "max_pixels", "fps", "num_frames" or )"
        R"("do_sample_frames")");
  CHECK(error_of(R"({"images_kwargs": {"fps": 1}})") ==
        R"(request: media_kwargs.images_kwargs has "fps", expected "min_pixels" or "max_pixels")");
  CHECK(error_of(R"({"videos_kwargs": 1})") == "request: media_kwargs.videos_kwargs is a number, expected an object");
  CHECK(error_of(R"({"max_pixels": 1.5})") == "request: media_kwargs.max_pixels is a number, expected an integer");
  CHECK(error_of(R"({"fps": "2"})") == "request: media_kwargs.fps is a string, expected a number");
  CHECK(error_of(R"({"do_sample_frames": 1})") ==
        "request: media_kwargs.do_sample_frames is a number, expected a boolean");
}

}  // namespace
}  // namespace treble
