#include "media/sample_frames.h"

#include <doctest/doctest.h>
#include <treble/error.h>

#include <cmath>

#include "media/fitted_size.h"

namespace treble {
namespace {

using Indices = std::vector<std::int64_t>;

const MediaProcessorConfig kVideo = MediaConfig().video;

// Frames and sizes of transformers' Qwen3VLVideoProcessor, version 5.17.
TEST_CASE("sample_frames: the kept frames of clips of several rates are the original processor's") {
  CHECK(sampled_frames(8, kAssumedFps, kVideo, {}) == Indices{0, 2, 5, 7});
  CHECK(sampled_frames(48, 24, kVideo, {}) == Indices{0, 16, 31, 47});
  CHECK(sampled_frames(90, 30, kVideo, {}) == Indices{0, 18, 36, 53, 71, 89});
  CHECK(sampled_frames(100, 25, kVideo, {}) == Indices{0, 14, 28, 42, 57, 71, 85, 99});
  CHECK(sampled_frames(9, 6, kVideo, {}) == Indices{0, 3, 5, 8});
  CHECK(sampled_frames(3, 30, kVideo, {}) == Indices{0, 1, 2});
  CHECK(sampled_frames(1, 30, kVideo, {}) == Indices{0});
  CHECK(sampled_frames(5, 30, kVideo, {.do_sample_frames = false}) == Indices{0, 1, 2, 3, 4});
  CHECK(sampled_frames(100000, 1e-3, kVideo, {}).size() == 768);
}

TEST_CASE("sample_frames: a rate whose timestamps would overflow is refused, a clip's and a request's") {
  const auto rate_of_clip = [](double fps) { return sampled_frames(8, fps, kVideo, {}).size(); };
  for (const double fps : {5e-324, 1e-7, 0.0, -1.0, 1e7, HUGE_VAL, std::nan("")}) {
    CAPTURE(fps);
    CHECK_THROWS_WITH_AS(rate_of_clip(fps), doctest::Contains("expected a number from 1e-06 to 1000000"), Error);
    CHECK_THROWS_WITH_AS(sampled_frames(8, 24, kVideo, {.fps = fps}), doctest::Contains("fps is"), Error);
  }
  CHECK(rate_of_clip(1e-6) == 8);
  CHECK(rate_of_clip(1e6) == 4);
}

TEST_CASE("sample_frames: a rate or number of frames is not ignored where every frame is kept") {
  const char* problem = "where every frame is kept";
  CHECK_THROWS_WITH_AS(sampled_frames(8, 24, kVideo, {.fps = 2, .do_sample_frames = false}), doctest::Contains(problem),
                       Error);
  MediaProcessorConfig keeps_all = kVideo;
  keeps_all.do_sample_frames = false;
  CHECK_THROWS_WITH_AS(sampled_frames(8, 24, keeps_all, {.num_frames = 4}),
                       doctest::Contains("in the release's configuration"), Error);
  CHECK(sampled_frames(8, 24, keeps_all, {.num_frames = 4, .do_sample_frames = true}).size() == 4);
}

TEST_CASE("sample_frames: a temporal patch has the mean of its frames' seconds, an odd last frame its own") {
  CHECK(patch_timestamps({0, 16, 31, 47}, 24) ==
        std::vector<double>{(0.0 + 16.0 / 24) / 2, (31.0 / 24 + 47.0 / 24) / 2});
  CHECK(patch_timestamps({0, 1, 2}, 30) == std::vector<double>{(1.0 / 30) / 2, 2.0 / 30});
}

TEST_CASE("fitted_size: images and frames get the original processor's sizes") {
  const auto image = [](std::int64_t height, std::int64_t width) {
    return fitted_image_size({height, width}, MediaConfig().image);
  };
  CHECK(image(1, 1) == PictureSize{256, 256});
  CHECK(image(33, 100) == PictureSize{160, 448});
  CHECK(image(48, 80) == PictureSize{224, 352});
  CHECK(image(333, 1001) == PictureSize{320, 992});
  CHECK(image(720, 1280) == PictureSize{704, 1280});
  CHECK(image(1080, 1920) == PictureSize{1088, 1920});
  CHECK(image(4000, 250) == PictureSize{4000, 256});
  CHECK(image(3000, 4000) == PictureSize{3008, 4000});
  CHECK(image(4100, 4100) == PictureSize{4096, 4096});
  CHECK(image(5000, 8000) == PictureSize{3232, 5152});

  const auto frame = [](std::int64_t frames, std::int64_t height, std::int64_t width) {
    return fitted_frame_size({height, width}, frames, kVideo);
  };
  CHECK(frame(4, 480, 640) == PictureSize{480, 640});
  CHECK(frame(16, 720, 1280) == PictureSize{704, 1280});
  CHECK(frame(3, 240, 320) == PictureSize{256, 320});
  CHECK(frame(5, 100, 100) == PictureSize{96, 96});
  CHECK(frame(32, 1080, 1920) == PictureSize{640, 1152});
  CHECK(frame(768, 360, 640) == PictureSize{128, 224});
  CHECK(frame(4, 16, 16) == PictureSize{32, 32});
}

}  // namespace
}  // namespace treble
