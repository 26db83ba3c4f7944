#include "record/media_source.h"

#include <doctest/doctest.h>
#include <treble/error.h>

#include <string>
#include <string_view>

#include "base/testing/temp_folder.h"

namespace treble {
namespace {

namespace fs = std::filesystem;
using testing::TempFolder;

std::string text_of(const FileContent& bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Json json_of(const std::string& text) {
  return parse_json(text, "test", ErrorCode::kInternal);
}

std::string image(const Json& json, const MediaSourceRules& rules = {}) {
  const MediaSource source = read_image_source(json, "images[0]", rules);
  CHECK(!source.is_frames);
  REQUIRE(source.files.size() == 1);
  return text_of(source.files[0]);
}

template <typename Read>
std::string error_of(const Read& read) {
  try {
    read();
    return "";
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kRequest);
    return error.what();
  }
}

std::string image_error(const Json& json, const MediaSourceRules& rules = {}) {
  return error_of([&] { read_image_source(json, "images[0]", rules); });
}

std::string video_error(const Json& json, const MediaSourceRules& rules = {}) {
  return error_of([&] { read_video_source(json, "videos[0]", rules); });
}

TEST_CASE("media_source: a picture is a data URL or base64, padded or not, in lines or not") {
  CHECK(image("data:image/png;base64,aGVsbG8=") == "hello");
  CHECK(image("DATA:IMAGE/JPG;BASE64,aGVsbG8") == "hello");
  CHECK(image("data:;base64,aGVsbG8=") == "hello");
  CHECK(image("aGVsbG8=") == "hello");
  CHECK(image("aGVs\r\nbG8=\n") == "hello");
  CHECK(image(" \n data:image/png;base64,aGVsbG8=") == "hello");
  CHECK(image(json_of(R"({"base64": " data:image/png;base64,aGVsbG8="})")) == "hello");
  CHECK(image("AAECA/8+/v7+") == std::string("\x00\x01\x02\x03\xff\x3e\xfe\xfe\xfe", 9));
}

TEST_CASE("media_source: a picture is an object as the dialects have it") {
  for (const char* text :
       {R"({"content_type": "image/png", "base64": "aGVsbG8="})",
        R"({"type": "image", "format": "png", "data_base64": "aGVsbG8="})", R"({"type": "image", "data": "aGVsbG8="})",
        R"({"url": "data:image/png;base64,aGVsbG8="})",
        R"({"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8=", "detail": "low"}})",
        R"({"type": "input_image", "image_url": "data:image/png;base64,aGVsbG8="})"}) {
    CAPTURE(text);
    CHECK(image(json_of(text)) == "hello");
  }
}

TEST_CASE("media_source: what is no picture is refused with its name") {
  CHECK(image_error("not base64!") ==
        "request: images[0] is \"not base64!\": neither a data URL nor base64 (its character 11 is \"!\"); send the "
        "file's content");
  CHECK(image_error("aGVsbG8=aaaa").find("neither") != std::string::npos);
  CHECK(image_error("aGVsb").find("neither") != std::string::npos);
  CHECK(image_error("aGVsbG8==").find("neither") != std::string::npos);
  CHECK(image_error("").find("neither") != std::string::npos);
  CHECK(image_error("data:image/png,hello") == "request: images[0] is a data URL without \";base64,\"; encode it so");
  CHECK(image_error("data:image/png;base64").find("without") != std::string::npos);
  CHECK(image_error("data:image/png;base64,%%%") ==
        "request: images[0] is a data URL whose content is no base64: its character 1 is \"%\"");
  CHECK(image_error(Json::integer(3)).starts_with("request: images[0] is a number, expected base64"));
  CHECK(image_error(json_of(R"({"base64": 3})")) ==
        "request: images[0] has base64 that is a number, expected base64 text");
  CHECK(image_error(json_of("{}")).find("has none of") != std::string::npos);
  CHECK(image_error(json_of(R"({"image_url": {"url": 1}})")).find("expected a data URL") != std::string::npos);
}

TEST_CASE("media_source: base64 with a slip is told what the slip is, and that it is no file either") {
  const TempFolder folder;
  const MediaSourceRules rules{.limits = {}, .folder = folder.path()};
  const auto has = [&](const char* text, const char* slip) {
    CAPTURE(text);
    const std::string message = image_error(text, rules), without_folder = image_error(text);
    CHECK(message.find("no file of that name in") != std::string::npos);
    CHECK(message.find(std::string("and no base64 (") + slip) != std::string::npos);
    CHECK(without_folder.find(std::string("nor base64 (") + slip) != std::string::npos);
  };
  has("aGVsbG-_", "its character 7 is \"-\", of the URL-safe alphabet; the standard one has + and /");
  has("aGVs!G8=", "its character 5 is \"!\"");
  has("aGVsbG8==", "it ends with 2 =, where its 7 digits need 1");
  has("aGVs=bG8", "a = stands before its character 6");
  has("aGVsb", "it has 5 digits, one too many or some too few");
  has("aGVsbG\xc3\xa4", "its character 7 is none of ASCII's printable");
  const std::string longer_than_a_path = std::string(5000, 'A') + "!";
  CHECK(image_error(longer_than_a_path, rules).find("neither a data URL nor base64 (its character 5001") !=
        std::string::npos);
}

TEST_CASE("media_source: of several sources none is passed over in silence") {
  CHECK(image_error(json_of(R"({"base64": "aGVsbG8=", "url": "data:;base64,aGVsbG8="})")) ==
        "request: images[0] has both \"base64\" and \"url\"; leave one out");
  CHECK(image_error(json_of(R"({"data": "aGVsbG8=", "image_url": {"url": "x"}})")).find("has both") !=
        std::string::npos);
  CHECK(video_error(json_of(R"({"frames": ["YQ=="], "base64": "YQ=="})")).find("both \"frames\" and \"base64\"") !=
        std::string::npos);
  CHECK(video_error(json_of(R"({"base64": "YQ==", "fps": 2})")).find("\"fps\" without \"frames\"") !=
        std::string::npos);
  CHECK(image(json_of(R"({"base64": "aGVsbG8=", "url": null})")) == "hello");
}

TEST_CASE("media_source: a file that is out of reach is not said to be missing") {
  const TempFolder folder;
  std::filesystem::create_symlink("loop.png", folder.path() / "loop.png");
  const std::string message = image_error("loop.png", {.limits = {}, .folder = folder.path()});
  CHECK(message.find("no file of that name can be reached in") != std::string::npos);
  CHECK(message.find("symbolic links") != std::string::npos);
  // What is base64 all the same is read.
  std::filesystem::create_symlink("aGVsbG8=", folder.path() / "aGVsbG8=");
  CHECK(image("aGVsbG8=", {.limits = {}, .folder = folder.path()}) == "hello");
}

TEST_CASE("media_source: nothing is fetched") {
  for (const char* url : {"https://example.com/a.png", "HTTP://example.com/a.png", "file:///etc/hostname"}) {
    CAPTURE(url);
    CHECK(image_error(url).find("no URL is fetched") != std::string::npos);
    CHECK(image_error(Json::Object{{"url", url}}).find("no URL is fetched") != std::string::npos);
    CHECK(image_error(url, {.limits = {}, .folder = "/"}).find("no URL is fetched") != std::string::npos);
  }
}

TEST_CASE("media_source: a path is read only where the rules have a folder") {
  const TempFolder folder;
  folder.write("pictures/a.png", "content");
  CHECK(image("pictures/a.png", {.limits = {}, .folder = folder.path()}) == "content");
  CHECK(image((folder.path() / "pictures/a.png").string(), {.limits = {}, .folder = "."}) == "content");
  CHECK(image("aGVsbG8=", {.limits = {}, .folder = folder.path()}) == "hello");
  CHECK(image_error("pictures/a.png").find("neither a data URL nor base64") != std::string::npos);
  CHECK(image_error((folder.path() / "pictures/a.png").string()).find("neither") != std::string::npos);
  CHECK(image_error("none.png", {.limits = {}, .folder = folder.path()}).find("no file of that name") !=
        std::string::npos);
  CHECK(image_error("pictures", {.limits = {}, .folder = folder.path()}).find("which is no file") != std::string::npos);
  CHECK(image_error("/dev/zero", {.limits = {}, .folder = "."}).find("which is no file") != std::string::npos);
}

TEST_CASE("media_source: a file beyond the limit is refused before it is decoded or read") {
  const TempFolder folder;
  folder.write("a.png", "123456");
  MediaSourceRules rules{.limits = {}, .folder = folder.path()};
  rules.limits.max_image_bytes = 5;
  const std::string problem = "request: images[0] has 6 bytes, limit is 5; make it smaller";
  CHECK(image_error("MTIzNDU2", rules) == problem);
  CHECK(image_error("data:;base64,MTIzNDU2", rules) == problem);
  CHECK(image_error(json_of(R"({"base64": "MTIzNDU2"})"), rules) == problem);
  CHECK(image_error("a.png", rules) == problem);
}

TEST_CASE("media_source: a clip is a file, a list of pictures, frames with their rate, or a folder of pictures") {
  const TempFolder folder;
  folder.write("clip/10.png", "third");
  folder.write("clip/02.png", "second");
  folder.write("clip/01.png", "first");
  folder.write("clip/.hidden", "");
  const MediaSourceRules rules{.limits = {}, .folder = folder.path()};

  const MediaSource file = read_video_source("aGVsbG8=", "videos[0]", rules);
  CHECK(!file.is_frames);
  CHECK(text_of(file.files.at(0)) == "hello");

  const MediaSource list = read_video_source(json_of(R"(["YQ==", {"base64": "Yg=="}])"), "videos[0]", rules);
  CHECK(list.is_frames);
  CHECK(!list.frame_rate);
  REQUIRE(list.files.size() == 2);
  CHECK(text_of(list.files[1]) == "b");

  const MediaSource frames =
      read_video_source(json_of(R"({"frames": ["YQ==", "Yg=="], "fps": 12.5})"), "videos[0]", rules);
  CHECK(frames.is_frames);
  CHECK(frames.frame_rate == 12.5);

  const MediaSource pictures = read_video_source("clip", "videos[0]", rules);
  CHECK(pictures.is_frames);
  REQUIRE(pictures.files.size() == 3);
  CHECK(text_of(pictures.files[0]) == "first");
  CHECK(text_of(pictures.files[2]) == "third");
}

TEST_CASE("media_source: what is wrong with a clip is said with the frame") {
  CHECK(video_error(json_of(R"({"frames": ["YQ==", 3]})")).starts_with("request: videos[0].frames[1] is a number"));
  CHECK(video_error(json_of("[]")).find("frames that are none") != std::string::npos);
  CHECK(video_error(json_of(R"({"frames": 3})")).find("frames that are a number") != std::string::npos);
  for (const char* fps : {"0", "-1", "5e-324", "1e300", "true", "\"24\""}) {
    CAPTURE(fps);
    CHECK(video_error(json_of(R"({"frames": ["YQ=="], "fps": )" + std::string(fps) + "}"))
              .find("expected a number from 1e-06 to 1000000 frames a second") != std::string::npos);
  }
  MediaSourceRules rules;
  rules.limits.max_frames = 1;
  CHECK(video_error(json_of(R"(["YQ==", "YQ=="])"), rules) ==
        "request: videos[0] has 2 frames, limit is 1; send fewer");
  rules.limits.max_frames = 2;
  rules.limits.max_video_bytes = 1;
  CHECK(video_error(json_of(R"(["YQ==", "YQ=="])"), rules).find("has 2 bytes, limit is 1") != std::string::npos);
  const TempFolder empty;
  CHECK(video_error(empty.path().string(), {.limits = {}, .folder = "."}).find("without pictures") !=
        std::string::npos);
}

}  // namespace
}  // namespace treble
