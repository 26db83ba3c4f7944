#include "checkpoint/safetensors_writer.h"

#include <doctest/doctest.h>
#include <treble/error.h>

#include <string>

#include "checkpoint/safetensors.h"
#include "checkpoint/testing/release_files.h"

namespace treble {
namespace {

using testing::TempFolder;

std::span<const std::byte> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

TEST_CASE("safetensors writer: what was written in pieces and in any order is read back") {
  const TempFolder folder;
  SafetensorsWriter writer(folder / "a.safetensors",
                           {{.name = "codes", .dtype = DType::kU8, .shape = {3, 1}},
                            {.name = "scales", .dtype = DType::kF32, .shape = {2}},
                            {.name = "norm", .dtype = DType::kBF16, .shape = {2}},
                            {.name = "nothing", .dtype = DType::kBF16, .shape = {0, 4}}},
                           {"state"});
  writer.write("codes", 1, bytes_of("bc"));
  writer.write("codes", 0, bytes_of("a"));
  writer.set_text("state", R"({"shape": [2, 3]})");
  writer.write("norm", 0, bytes_of("wxyz"));
  writer.write("scales", 0, bytes_of("01234567"));
  writer.finish();

  const std::vector<testing::FileTensor> tensors = testing::read_safetensors(folder / "a.safetensors");
  REQUIRE(tensors.size() == 5);
  const auto check = [&](std::size_t i, const char* name, const char* dtype, const std::string& data) {
    CHECK(tensors[i].name == name);
    CHECK(tensors[i].dtype == dtype);
    CHECK(tensors[i].data == data);
  };
  check(0, "scales", "F32", "01234567");
  check(3, "codes", "U8", "abc");
  check(4, "state", "U8", R"({"shape": [2, 3]})");
  CHECK(tensors[3].shape == std::vector<std::int64_t>{3, 1});
}

TEST_CASE("safetensors writer: data begin at a multiple of 8, so that every tensor is aligned to its elements") {
  for (std::size_t length = 1; length < 10; ++length) {
    const TempFolder folder;
    const std::string name(length, 'n');
    SafetensorsWriter writer(folder / "a.safetensors", {{.name = name, .dtype = DType::kF64, .shape = {1}}}, {});
    writer.write(name, 0, bytes_of("01234567"));
    writer.finish();
    const SafetensorsFile file(folder / "a.safetensors");
    CHECK(reinterpret_cast<std::uintptr_t>(file.tensors()[0].view.data()) % 8 == 0);
    CHECK(file.metadata().find("format")->as_string() == "pt");
  }
}

TEST_CASE("safetensors writer: a file that was not finished is refused by the reader") {
  const TempFolder folder;
  {
    SafetensorsWriter writer(folder / "a.safetensors", {{.name = "a", .dtype = DType::kU8, .shape = {4}}}, {"text"});
    writer.write("a", 0, bytes_of("abcd"));
  }
  CHECK_THROWS_AS(SafetensorsFile(folder / "a.safetensors"), Error);
}

TEST_CASE("safetensors writer: bytes left out or too many are our mistake and found") {
  const TempFolder folder;
  SafetensorsWriter writer(folder / "a.safetensors", {{.name = "a", .dtype = DType::kU8, .shape = {4}}}, {"text"});
  writer.write("a", 0, bytes_of("ab"));
  CHECK_THROWS_AS(writer.finish(), Error);
  writer.set_text("text", "x");
  CHECK_THROWS_AS(writer.finish(), Error);
  CHECK_THROWS_AS(writer.write("a", 2, bytes_of("cde")), Error);
  writer.write("a", 2, bytes_of("cd"));
  writer.finish();
  CHECK(SafetensorsFile(folder / "a.safetensors").tensors().size() == 2);
}

TEST_CASE("safetensors writer: a folder that is not there is an error that names the file") {
  const TempFolder folder;
  try {
    SafetensorsWriter(folder / "none/a.safetensors", {}, {});
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kDevice);
    CHECK(std::string(error.what()).find("none/a.safetensors") != std::string::npos);
  }
}

}  // namespace
}  // namespace treble
