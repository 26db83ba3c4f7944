#include "media/testing/expected.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <treble/error.h>

#include <cmath>

#include "base/mapped_file.h"

namespace treble::testing {

std::filesystem::path data_folder() {
  return TREBLE_TEST_DATA;
}

std::vector<std::byte> read_file(const std::filesystem::path& path) {
  const MappedFile file(path);
  return {file.bytes().begin(), file.bytes().end()};
}

Json read_json(const std::filesystem::path& path) {
  return parse_json(read_text_file(path), path.string(), ErrorCode::kInternal);
}

std::string sha256(const void* bytes, std::size_t count) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  REQUIRE(EVP_Digest(bytes, count, digest, &size, EVP_sha256(), nullptr) == 1);
  return fmt::format("{:02x}", fmt::join(digest, digest + size, ""));
}

namespace {

template <typename T>
void check_array(const T* values, std::size_t count, const Json& expected, Tolerance tolerance) {
  double expected_count = 1;
  for (const Json& size : expected.find("shape")->as_array()) expected_count *= size.as_double();
  REQUIRE(static_cast<double>(count) == expected_count);
  const auto step = static_cast<std::size_t>(expected.find("step")->as_double());
  const Json::Array& some = expected.find("values")->as_array();
  double largest = 0;
  for (std::size_t i = 0; i < some.size(); ++i)
    largest = std::max(largest, std::abs(some[i].as_double() - static_cast<double>(values[i * step])));
  CHECK(largest <= tolerance.largest);
  if (tolerance.is_exact) CHECK(sha256(values, count * sizeof(T)) == expected.find("sha256")->as_string());
}

}  // namespace

std::vector<float> pixel_values(const MediaItem& item) {
  constexpr std::size_t kChannels = 3, kFrames = 2, kPixels = 256;
  const auto frames = static_cast<std::size_t>(item.frames_per_patch());
  std::vector<float> values;
  for (std::size_t at = 0; at < item.levels.size(); at += kChannels * frames * kPixels) {
    for (std::size_t channel = 0; channel < kChannels; ++channel) {
      for (std::size_t frame = 0; frame < kFrames; ++frame) {
        const std::size_t first = at + (channel * frames + frame % frames) * kPixels;
        for (std::size_t i = first; i < first + kPixels; ++i)
          values.push_back((static_cast<float>(item.levels[i]) - item.mean[channel]) / item.deviation[channel]);
      }
    }
  }
  return values;
}

void check_pixels(std::span<const float> values, const Json& expected, Tolerance tolerance) {
  check_array(values.data(), values.size(), expected, tolerance);
}

void check_levels(const Picture& picture, const Json& expected, Tolerance tolerance) {
  CHECK(static_cast<double>(picture.height) == expected.find("shape")->as_array()[0].as_double());
  check_array(picture.rgb.data(), static_cast<std::size_t>(3 * picture.height * picture.width), expected, tolerance);
}

}  // namespace treble::testing
