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

void check_pixels(const PixelValues& values, const Json& expected) {
  constexpr std::size_t kStep = 4099;
  const Json::Array& shape = expected.find("shape")->as_array();
  REQUIRE(static_cast<double>(values.size()) == shape[0].as_double() * shape[1].as_double());
  const Json::Array& some = expected.find("every_4099th")->as_array();
  double largest = 0;
  for (std::size_t i = 0; i < some.size(); ++i)
    largest = std::max(largest, std::abs(some[i].as_double() - static_cast<double>(values[i * kStep])));
  CHECK(largest <= 1e-6);
  CHECK(sha256(values.data(), values.size() * sizeof(float)) == expected.find("sha256")->as_string());
}

}  // namespace treble::testing
