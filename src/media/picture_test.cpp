#include "media/picture.h"

#include <doctest/doctest.h>
#include <treble/error.h>

#include <cstring>
#include <string>

#include "media/testing/expected.h"

namespace treble::testing {
namespace {

const MediaLimits kLimits;

/// The message of the refusal; "" if the file was read.
std::string refusal(std::span<const std::byte> file, const MediaLimits& limits = kLimits) {
  try {
    decode_picture(file, limits);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kRequest);
    return error.what();
  }
  return "";
}

/// Decoders of lossy formats may differ by a level or two from version to version.
Tolerance tolerance_of(const std::string& name) {
  const bool is_lossy = name.ends_with(".jpg") || name.starts_with("lossy");
  return is_lossy ? Tolerance{.largest = 2, .is_exact = false} : Tolerance{};
}

TEST_CASE("picture: files of every kind are decoded to the levels of Pillow's convert(\"RGB\")") {
  const Json expected = read_json(data_folder() / "media" / "expected.json");
  for (const auto& [name, image] : expected.find("images")->as_object()) {
    CAPTURE(name);
    const Picture picture = decode_picture(read_file(data_folder() / "media" / name), kLimits);
    check_levels(picture, *image.find("rgb"), tolerance_of(name));
  }
}

TEST_CASE("picture: the first bytes decide on the format") {
  const auto sniff = [](std::string_view text) { return sniff_picture(std::as_bytes(std::span(text))); };
  CHECK(sniff("\x89PNG\r\n\x1a\n") == PictureFormat::kPng);
  CHECK(sniff("\xff\xd8\xff\xe0") == PictureFormat::kJpeg);
  CHECK(sniff(std::string_view("RIFF\0\0\0\0WEBP", 12)) == PictureFormat::kWebp);
  CHECK(sniff("RIFF....WAVE") == PictureFormat::kUnknown);
  CHECK(sniff("GIF89a") == PictureFormat::kGif);
  CHECK(sniff("GIF87") == PictureFormat::kUnknown);
  CHECK(sniff("") == PictureFormat::kUnknown);
}

TEST_CASE("picture: what is no picture is refused with the formats that are read") {
  const std::string_view text = "<svg xmlns='http://www.w3.org/2000/svg'/>";
  CHECK(refusal(std::as_bytes(std::span(text))).find("PNG, JPEG, WebP or GIF") != std::string::npos);
  CHECK(refusal({}).find("no bytes") != std::string::npos);
}

TEST_CASE("picture: a file is refused from its header if it promises too many pixels or none") {
  const Json expected = read_json(data_folder() / "media" / "expected.json");
  for (const Json& name : expected.find("broken")->as_array()) {
    CAPTURE(name.as_string());
    const std::string message = refusal(read_file(data_folder() / "media" / name.as_string()));
    const bool is_huge = name.as_string().starts_with("huge");
    CHECK(message.find(is_huge ? "the limit is 16777216 pixels" : "is damaged") != std::string::npos);
  }
}

TEST_CASE("picture: a limit on pixels or bytes holds for every format") {
  for (const char* name : {"rgb8.png", "baseline_420.jpg", "lossless.webp", "animated.webp", "still.gif"}) {
    CAPTURE(name);
    const std::vector<std::byte> file = read_file(data_folder() / "media" / name);
    const Picture picture = decode_picture(file, kLimits);
    CHECK(refusal(file, {.max_pixels = picture.height * picture.width}) == "");
    CHECK(refusal(file, {.max_pixels = picture.height * picture.width - 1}).find("pixels large") != std::string::npos);
    CHECK(refusal(file, {.max_image_bytes = file.size()}) == "");
    CHECK(refusal(file, {.max_image_bytes = file.size() - 1}).find("bytes, the limit is") != std::string::npos);
  }
}

TEST_CASE("picture: a file cut off anywhere before its last pixel is refused") {
  const Json expected = read_json(data_folder() / "media" / "expected.json");
  for (const auto& [name, image] : expected.find("images")->as_object()) {
    if (name.starts_with("large")) continue;
    CAPTURE(name);
    const std::vector<std::byte> file = read_file(data_folder() / "media" / name);
    const Picture whole = decode_picture(file, kLimits);
    for (std::size_t size = 0; size < file.size(); ++size) {
      try {
        const Picture picture = decode_picture(std::span(file).first(size), kLimits);
        // The last pixel may be there already: then nothing is missing.
        const bool is_same = picture.height == whole.height && picture.width == whole.width &&
                             std::memcmp(picture.rgb.data(), whole.rgb.data(),
                                         static_cast<std::size_t>(3 * whole.height * whole.width)) == 0;
        if (!is_same) CHECK_MESSAGE(is_same, "cut to ", size, " of ", file.size(), " bytes");
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kRequest) CHECK(error.code() == ErrorCode::kRequest);
      }
    }
  }
}

TEST_CASE("picture: a JPEG file whose coded data are damaged is refused, not answered with gray blocks") {
  std::vector<std::byte> file = read_file(data_folder() / "media" / "baseline_444.jpg");
  // A marker in the middle of the last segment, where no marker may be.
  const std::size_t middle = file.size() - 300;
  file[middle] = std::byte{0xff};
  file[middle + 1] = std::byte{0xd9};
  CHECK(refusal(file).find("JPEG file is damaged") != std::string::npos);
}

}  // namespace
}  // namespace treble::testing
