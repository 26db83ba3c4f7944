#include "checkpoint/safetensors.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <treble/error.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/testing/release_files.h"

namespace treble {
namespace {

using testing::safetensors_bytes;
using testing::TempFolder;

/// What reading a file of these bytes says, without the path.
std::string refusal(std::string_view bytes) {
  const TempFolder folder;
  const std::string path = (folder / "a.safetensors").string();
  testing::write_file(path, bytes);
  try {
    const SafetensorsFile file(path);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kCheckpoint);
    const std::string_view message = error.what();
    const std::string start = "checkpoint: " + path;
    REQUIRE(message.starts_with(start));
    return std::string(message.substr(start.size()));
  }
  return "no error";
}

/// The same for a header and that many bytes of data.
std::string refusal(std::string_view header, std::size_t data_bytes) {
  return refusal(safetensors_bytes(header, std::string(data_bytes, 'x')));
}

/// The same for one tensor "a" with 8 bytes of data.
std::string refusal_of_tensor(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return refusal(fmt::format(R"({{"a":{{"dtype":{},"shape":{},"data_offsets":{}}}}})", dtype, shape, offsets), 8);
}

bool contains(const std::string& text, std::string_view part) {
  CAPTURE(text);
  CAPTURE(part);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("safetensors: tensors have the name, dtype, shape and bytes that were written, in the order of their data") {
  const TempFolder folder;
  testing::write_safetensors(folder / "a.safetensors", {{"second", "F32", {2}, "abcdefgh"},
                                                        {"scalar", "BF16", {}, "ij"},
                                                        {"nothing", "I64", {0, 3}, ""},
                                                        {"odd place", "I16", {1, 1}, "kl"}});
  const SafetensorsFile file(folder / "a.safetensors");
  REQUIRE(file.tensors().size() == 4);
  CHECK(file.tensors()[0].name == "second");
  CHECK(file.tensors()[0].view.describe() == "[2] f32");
  CHECK(std::memcmp(file.tensors()[0].view.data(), "abcdefgh", 8) == 0);
  CHECK(file.tensors()[1].view.describe() == "[] bf16");
  CHECK(file.tensors()[2].view);
  CHECK(file.tensors()[2].view.num_elements() == 0);
  CHECK(std::memcmp(file.tensors()[3].view.data(), "kl", 2) == 0);
}

TEST_CASE("safetensors: views stay valid when the file object moves") {
  const TempFolder folder;
  testing::write_safetensors(folder / "a.safetensors", {{"a", "U8", {3}, "abc"}});
  SafetensorsFile file(folder / "a.safetensors");
  const SafetensorsFile moved = std::move(file);
  CHECK(std::memcmp(moved.tensors()[0].view.data(), "abc", 3) == 0);
}

TEST_CASE("safetensors: every dtype that a release can hold is read") {
  const TempFolder folder;
  for (const DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3, DType::kI64,
                            DType::kI32, DType::kU32, DType::kI16, DType::kI8, DType::kU8, DType::kBool}) {
    const std::string name(safetensors_dtype(dtype));
    CAPTURE(name);
    testing::write_safetensors(folder / "a.safetensors", {testing::zeros("a", name, {3}, 3 * size_of(dtype))});
    CHECK(SafetensorsFile(folder / "a.safetensors").tensors()[0].view.dtype() == dtype);
  }
}

TEST_CASE("safetensors: metadata is passed over, and a header may be padded with blanks and out of order") {
  CHECK(refusal(R"({"__metadata__":{"format":"pt"},"b":{"dtype":"U8","shape":[3],"data_offsets":[1,4]},)"
                R"("a":{"shape":[1],"extra":null,"data_offsets":[0,1],"dtype":"U8"}}   )",
                4) == "no error");
  CHECK(refusal("{}", 0) == "no error");
}

TEST_CASE("safetensors: a missing file and a folder are errors that name them") {
  const TempFolder folder;
  for (const std::filesystem::path& path : {folder / "none.safetensors", folder.path()}) {
    try {
      const SafetensorsFile file(path);
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kCheckpoint);
      CHECK(contains(error.what(), path.string()));
    }
  }
}

TEST_CASE("safetensors: an empty file and one without a whole length are too short") {
  CHECK(contains(refusal(""), " is 0 bytes, a safetensors file has at least 8"));
  CHECK(contains(refusal("\x02\0\0"), " is 1 bytes, a safetensors file has at least 8"));
}

TEST_CASE("safetensors: a header longer than the file is an error, not a read past the end") {
  std::string bytes = safetensors_bytes("{}", "");
  bytes[0] = 3;
  CHECK(contains(refusal(bytes), " says its header has 3 bytes, the file ends after 2; download it again"));
  CHECK(contains(refusal(safetensors_bytes("{}", "").substr(0, 8)), "the file ends after 0"));
}

TEST_CASE("safetensors: a header of more than 100 MB is an error, whatever its length claims") {
  CHECK(contains(refusal(std::string("\x01\xE1\xF5\x05\0\0\0\0{}", 10)), " says its header has 100000001 bytes"));
  CHECK(contains(refusal(std::string(16, '\xFF')), " says its header has 18446744073709551615 bytes"));
}

TEST_CASE("safetensors: files of another kind are named as what they are") {
  CHECK(contains(refusal("GGUF\x03"), " is a GGUF file, expected safetensors"));
  CHECK(contains(refusal("version https://git-lfs.github.com/spec/v1\n"), " is a Git LFS pointer, not the weights"));
  CHECK(contains(refusal("", 0), "a header that is no JSON object"));
  CHECK(contains(refusal("[1]", 0), "a header that is no JSON object"));
  CHECK(contains(refusal("\xEF\xBB\xBF{}", 0), "a header that is no JSON object"));
}

TEST_CASE("safetensors: a header that is no JSON is an error") {
  CHECK(contains(refusal("{\"a\":", 0), ": header"));
  CHECK(contains(refusal("{}{}", 0), ": header"));
  CHECK(contains(refusal("{\"\xFF\":1}", 0), ": header"));
  CHECK(contains(refusal("{\"__metadata__\":" + std::string(100'000, '['), 0), ": header"));
}

TEST_CASE("safetensors: a description that lacks something or has it twice is an error") {
  CHECK(contains(refusal(R"({"a":7})", 0), R"(: "a" is a number, expected an object)"));
  CHECK(contains(refusal(R"({"a":{"shape":[],"data_offsets":[0,1]}})", 1), R"(: "a" has no dtype)"));
  CHECK(contains(refusal(R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", 1), R"(: "a" has no shape)"));
  CHECK(contains(refusal(R"({"a":{"dtype":"U8","shape":[]}})", 1), R"(: "a" has no data_offsets)"));
  CHECK(contains(refusal(R"({"a":{"dtype":"U8","dtype":"I8","shape":[],"data_offsets":[0,1]}})", 1),
                 R"("a" has two dtype)"));
}

TEST_CASE("safetensors: a name twice is an error") {
  CHECK(contains(refusal(R"({"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]},)"
                         R"("a":{"dtype":"U8","shape":[],"data_offsets":[1,2]}})",
                         2),
                 R"(: "a" is in the header twice)"));
}

TEST_CASE("safetensors: a dtype that is not supported is named") {
  CHECK(contains(refusal_of_tensor(R"("F8_E5M2")", "[8]", "[0,8]"),
                 R"(: "a" has dtype "F8_E5M2", which is not supported)"));
  CHECK(contains(refusal_of_tensor(R"("bf16")", "[4]", "[0,8]"), R"(has dtype "bf16")"));
  CHECK(contains(refusal_of_tensor("null", "[4]", "[0,8]"), "has a dtype that is null"));
}

TEST_CASE("safetensors: sizes that are negative, fractional or no numbers are errors") {
  CHECK(contains(refusal_of_tensor(R"("U8")", "[-8]", "[0,8]"), R"("a" has -8 in its shape, expected whole numbers)"));
  CHECK(contains(refusal_of_tensor(R"("U8")", "[8.0]", "[0,8]"), "has 8.0 in its shape"));
  CHECK(contains(refusal_of_tensor(R"("U8")", "[1e1]", "[0,8]"), "has 1e1 in its shape"));
  CHECK(contains(refusal_of_tensor(R"("U8")", R"(["8"])", "[0,8]"), "has a string in its shape"));
  CHECK(contains(refusal_of_tensor(R"("U8")", "8", "[0,8]"), "has a shape that is a number"));
  CHECK(
      contains(refusal_of_tensor(R"("U8")", "[9223372036854775808]", "[0,8]"), "in its shape, expected whole numbers"));
}

TEST_CASE("safetensors: a shape whose bytes overflow is an error, also when a size of 0 would hide it") {
  CHECK(contains(refusal_of_tensor(R"("F32")", "[4294967296,4294967296]", "[0,8]"), "more than 2^63 bytes"));
  CHECK(
      contains(refusal_of_tensor(R"("U8")", "[9223372036854775807,9223372036854775807,0]", "[0,0]"), "more than 2^63"));
  CHECK(contains(refusal_of_tensor(R"("U8")", "[0,9223372036854775807,2]", "[0,0]"), "more than 2^63"));
  CHECK(contains(refusal_of_tensor(R"("F32")", "[9223372036854775807]", "[0,8]"), "more than 2^63"));
}

TEST_CASE("safetensors: more than five dimensions are an error") {
  CHECK(contains(refusal_of_tensor(R"("U8")", "[1,1,1,1,1,8]", "[0,8]"), R"("a" has 6 dimensions, at most 5)"));
}

TEST_CASE("safetensors: offsets that are no pair in order are errors") {
  CHECK(contains(refusal_of_tensor(R"("U8")", "[8]", "[0,8,9]"), "has data_offsets [0, 8, 9], expected [begin, end]"));
  CHECK(contains(refusal_of_tensor(R"("U8")", "[8]", "[8,0]"), "has data_offsets [8, 0]"));
  CHECK(contains(refusal_of_tensor(R"("U8")", "[8]", "[-1,7]"), "has -1 in its data_offsets"));
}

TEST_CASE("safetensors: offsets that do not give the size of shape and dtype are errors") {
  CHECK(contains(refusal_of_tensor(R"("F32")", "[3]", "[0,8]"), R"(: "a" has 8 bytes, [3] f32 needs 12)"));
  CHECK(contains(refusal_of_tensor(R"("F32")", "[0]", "[0,8]"), "has 8 bytes, [0] f32 needs 0"));
}

TEST_CASE("safetensors: offsets past the end of the data are an error") {
  CHECK(contains(refusal_of_tensor(R"("U8")", "[9]", "[0,9]"), R"(: "a" ends at byte 9 of the data, the file has 8)"));
  CHECK(contains(refusal_of_tensor(R"("U8")", "[1]", "[9223372036854775806,9223372036854775807]"), "the file has 8"));
}

TEST_CASE("safetensors: tensors that overlap are an error") {
  CHECK(contains(refusal(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                         R"("b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}})",
                         7),
                 R"(: "b" begins at byte 3 of the data, inside "a")"));
}

TEST_CASE("safetensors: bytes that no tensor owns are an error, between tensors and after the last") {
  CHECK(contains(refusal(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                         R"("b":{"dtype":"U8","shape":[3],"data_offsets":[5,8]}})",
                         8),
                 R"(: "b" begins at byte 5 of the data, expected 4: no tensor owns the bytes between)"));
  CHECK(contains(refusal_of_tensor(R"("U8")", "[7]", "[1,8]"), "begins at byte 1 of the data, expected 0"));
  CHECK(contains(refusal_of_tensor(R"("U8")", "[7]", "[0,7]"), " has 8 bytes of data, its tensors end at byte 7"));
  CHECK(contains(refusal("{}", 1), " has 1 bytes of data, its tensors end at byte 0"));
}

TEST_CASE("safetensors: a long or strange name is cut and escaped in a message") {
  const std::string long_name(300, 'n');
  CHECK(contains(refusal("{\"" + long_name + "\":1}", 0), ": \"" + long_name.substr(0, 200) + "\"... is a number"));
  CHECK(contains(refusal(R"({"a\nb":1})", 0), R"(: "a\nb" is a number)"));
  std::string two_byte_characters = "x";
  for (int i = 0; i < 150; ++i) two_byte_characters += "\xC3\xA9";
  CHECK(contains(refusal("{\"" + two_byte_characters + "\":1}", 0), "\xC3\xA9\"... is a number"));
}

TEST_CASE("safetensors: a damaged header is refused or read, never more than that") {
  const std::string whole = testing::read_file(testing::micro_release() / "joint_head.safetensors");
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, whole.data(), sizeof(header_bytes));
  const std::size_t data_begin = 8 + static_cast<std::size_t>(header_bytes);

  constexpr std::uint32_t kSeed = 20260930;
  std::mt19937 random(kSeed);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  int refused = 0;
  const auto read = [&](const std::filesystem::path& path) {
    try {
      const SafetensorsFile file(path);
      // What is read lies inside the file: its first and last bytes can be touched.
      for (const SafetensorsFile::Tensor& tensor : file.tensors()) {
        const auto* data = static_cast<const volatile char*>(tensor.view.data());
        if (tensor.view.num_bytes() > 0) static_cast<void>(data[0] + data[tensor.view.num_bytes() - 1]);
      }
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kCheckpoint);
      ++refused;
    }
  };

  const TempFolder folder;
  SUBCASE("cut off inside the header") {
    for (int round = 0; round < 1000; ++round) {
      testing::write_file(folder / "cut", whole.substr(0, below(data_begin)));
      read(folder / "cut");
    }
    CHECK(refused == 1000);
  }
  SUBCASE("cut off inside the data") {
    for (int round = 0; round < 20; ++round) {
      testing::write_file(folder / "cut", whole.substr(0, data_begin + below(whole.size() - data_begin)));
      read(folder / "cut");
    }
    CHECK(refused == 20);
  }
  SUBCASE("bits flipped") {
    testing::write_file(folder / "flipped", whole);
    std::fstream file(folder / "flipped", std::ios::binary | std::ios::in | std::ios::out);
    const auto put = [&](std::size_t at, char c) { file.seekp(static_cast<std::streamoff>(at)).put(c).flush(); };
    for (int round = 0; round < 3000; ++round) {
      std::vector<std::size_t> places(1 + below(3));
      for (std::size_t& at : places) {
        at = below(data_begin);
        put(at, static_cast<char>(whole[at] ^ (1 << below(8))));
      }
      read(folder / "flipped");
      for (const std::size_t at : places) put(at, whole[at]);
    }
    CHECK(refused > 1500);
    const int refused_before = refused;
    read(folder / "flipped");
    CHECK(refused == refused_before);
  }
}

}  // namespace treble
