#include "checkpoint/release_folder.h"

#include <doctest/doctest.h>
#include <treble/error.h>

#include <filesystem>
#include <string>

#include "checkpoint/testing/release_files.h"

namespace treble {
namespace {

using testing::TempFolder;

std::string refusal(const std::filesystem::path& path) {
  try {
    check_release_folder(path);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kCheckpoint);
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, std::string_view part) {
  CAPTURE(text);
  return text.find(part) != std::string::npos;
}

TEST_CASE("release folder: a path that the system cannot follow is refused in its words") {
  const TempFolder folder;
  std::filesystem::create_symlink("loop", folder / "loop");
  CHECK(contains(refusal(folder / "loop"), "cannot be opened: Too many levels of symbolic links"));
  CHECK(contains(refusal(folder / std::string(300, 'a')), "cannot be opened: File name too long"));
  testing::write_file(folder / "file", "");
  CHECK(contains(refusal(folder / "file"), "file is a file, expected a release folder"));
  CHECK(contains(refusal(folder / "file" / "inner"), "does not exist"));
  CHECK(contains(refusal(folder / "none"), "none does not exist"));
  CHECK(contains(refusal(""), "\"\" does not exist"));
  CHECK(refusal(folder.path()) == "no error");
}

}  // namespace
}  // namespace treble
