#include "record/media_reader.h"

#include <doctest/doctest.h>
#include <treble/error.h>

#include <string>
#include <vector>

#include "media/prepare.h"
#include "record/media_source.h"

namespace treble {
namespace {

/// 4 x 4 pixels, black.
constexpr const char* kBlack =
    "iVBORw0KGgoAAAANSUhEUgAAAAQAAAAECAIAAAAmkwkpAAAADElEQVR4nGNgIB0AAAA0AAF2Xq7DAAAAAElFTkSuQmCC";

/// 4 x 4 pixels, white.
constexpr const char* kWhite =
    "iVBORw0KGgoAAAANSUhEUgAAAAQAAAAECAIAAAAmkwkpAAAAFElEQVR4nGP8//8/AwwwMSAB3BwAlm4DBfIlvvkAAAAASUVORK5CYII=";

constexpr std::int64_t kMaxTokens = 1000;

Request request_of(const std::string& members) {
  return parse_request(R"({"state": "", "questions": {"q": {"type": "noul"}}, )" + members + "}");
}

std::string error_of(MediaReader& reader, const std::string& members) {
  try {
    reader.read(request_of(members), kMaxTokens);
    return "";
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kRequest);
    return error.what();
  }
}

std::string quoted(const char* text) {
  return '"' + std::string(text) + '"';
}

TEST_CASE("media_reader: images come first, then videos, whatever the order of the request's members") {
  MediaReader reader{MediaConfig()};
  const Request request = request_of(R"("videos": [[)" + quoted(kBlack) + "," + quoted(kBlack) + R"(]], "images": [)" +
                                     quoted(kWhite) + "," + quoted(kBlack) + "]");
  const MediaItems items = reader.read(request, kMaxTokens);
  REQUIRE(items.size() == 3);
  CHECK(items[0]->kind == MediaKind::kImage);
  CHECK(items[0]->levels.at(0) == 255);
  CHECK(items[1]->levels.at(0) == 0);
  CHECK(items[2]->kind == MediaKind::kVideo);
  CHECK(items[2]->timestamps.size() == 1);
}

TEST_CASE("media_reader: a picture that comes again is decoded once, in one request or in several") {
  MediaReader reader{MediaConfig()};
  const std::string images = R"("images": [)" + quoted(kBlack) + "," + quoted(kWhite) + "," + quoted(kBlack) + "]";
  const MediaItems first = reader.read(request_of(images), kMaxTokens);
  CHECK(first[0] == first[2]);
  CHECK(first[0] != first[1]);
  CHECK(reader.num_prepared() == 2);
  CHECK(reader.read(request_of(images), kMaxTokens)[1] == first[1]);
  CHECK(reader.num_prepared() == 2);
}

TEST_CASE("media_reader: items carry the digest of their content, pictures, clips and lists alike") {
  const MediaConfig config;
  MediaReader reader{config};
  const Request request = request_of(R"("images": [)" + quoted(kBlack) + R"(], "videos": [[)" + quoted(kBlack) + "," +
                                     quoted(kWhite) + "]]");
  const MediaItems items = reader.read(request, kMaxTokens);
  const MediaSourceRules rules;
  const MediaSource image = read_image_source(request.images.as_array()[0], "", rules);
  const MediaSource clip = read_video_source(request.videos.as_array()[0], "", rules);
  CHECK(items[0]->digest == image_digest(image.files.front(), config));
  CHECK(items[1]->digest == frames_digest(std::vector<FileBytes>(clip.files.begin(), clip.files.end()), config));
  CHECK(items[0]->digest == reader.read(request, kMaxTokens)[0]->digest);
}

TEST_CASE("media_reader: the same picture under other options is another item") {
  MediaReader reader{MediaConfig()};
  const std::string image = R"("images": [)" + quoted(kBlack) + "]";
  const MediaItems usual = reader.read(request_of(image), kMaxTokens);
  const MediaItems small = reader.read(request_of(image + R"(, "media_kwargs": {"min_pixels": 1024})"), kMaxTokens);
  CHECK(usual[0]->grid_h == 16);
  CHECK(small[0]->grid_h == 2);
  CHECK(usual[0]->digest != small[0]->digest);
  CHECK(reader.num_prepared() == 2);
}

TEST_CASE("media_reader: what does not fit into the cache is read all the same") {
  MediaReader reader(MediaConfig(), {}, 100);
  const std::string image = R"("images": [)" + quoted(kBlack) + "," + quoted(kBlack) + "]";
  CHECK(reader.read(request_of(image), kMaxTokens).size() == 2);
  CHECK(reader.num_prepared() == 2);
}

TEST_CASE("media_reader: reading ends where media have more tokens than a prompt may have") {
  MediaReader reader{MediaConfig()};
  const Request request =
      request_of(R"("images": [)" + quoted(kBlack) + "," + quoted(kWhite) + "," + quoted(kBlack) + "]");
  CHECK(reader.read(request, 192).size() == 3);
  try {
    reader.read(request, 127);
    FAIL("64 tokens each were allowed");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kTooLong);
    CHECK(std::string(error.what())
              .starts_with(
                  "request: the first 2 images and videos take 128 tokens, limit is 127; send fewer or smaller ones"));
  }
}

TEST_CASE("media_reader: clips given as pictures count, too") {
  MediaReader reader{MediaConfig()};
  const Request request = request_of(R"("videos": [[)" + quoted(kBlack) + "," + quoted(kWhite) + "], [" +
                                     quoted(kWhite) + "," + quoted(kBlack) + "]]");
  const MediaItems items = reader.read(request, kMaxTokens);
  const std::int64_t num_tokens = items[0]->num_tokens() + items[1]->num_tokens();
  CHECK(reader.read(request, num_tokens).size() == 2);
  CHECK_THROWS_WITH_AS(reader.read(request, num_tokens - 1), doctest::Contains("the first 2 images and videos"), Error);
}

TEST_CASE("media_reader: a release that does not say how it prepares media answers text, and no image or video") {
  MediaConfig config;
  config.lacks_image = config.lacks_video = "release/processor_config.json is missing";
  MediaReader reader(config);
  CHECK(reader.read(request_of(R"("images": [], "videos": [])"), kMaxTokens).empty());
  for (const std::string& media :
       {R"("images": [)" + quoted(kBlack) + "]", R"("videos": [[)" + quoted(kBlack) + "," + quoted(kBlack) + "]]"}) {
    CAPTURE(media);
    try {
      reader.read(request_of(media), kMaxTokens);
      FAIL("it was read with sizes that are none of the release's");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kCheckpoint);
      CHECK(std::string(error.what()).starts_with("release/processor_config.json is missing: "));
    }
  }
}

TEST_CASE("media_reader: what is wrong is said with the item's name") {
  MediaReader reader{MediaConfig()};
  CHECK(error_of(reader, R"("images": [)" + quoted(kBlack) + R"(, "aGVsbG8="])").starts_with("request: images[1]: "));
  CHECK(error_of(reader, R"("images": [3])").starts_with("request: images[0] is a number"));
  CHECK(error_of(reader, R"("videos": [[)" + quoted(kBlack) + "]]").starts_with("request: videos[0]: "));
  CHECK(error_of(reader, R"("images": ["a.png"])").find("neither a data URL nor base64") != std::string::npos);
  MediaLimits limits;
  limits.max_items = 1;
  MediaReader strict(MediaConfig(), limits);
  CHECK(error_of(strict, R"("images": ["a", "b"])") == "request: images holds 2 items, limit is 1");
}

}  // namespace
}  // namespace treble
