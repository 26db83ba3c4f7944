#include "quantize/output_folder.h"

#include <doctest/doctest.h>
#include <treble/error.h>

#include <memory>
#include <string>

#include "checkpoint/testing/release_files.h"

namespace treble {
namespace {

namespace fs = std::filesystem;
using testing::read_file;
using testing::TempFolder;
using testing::write_file;

std::string refusal(const fs::path& path, bool is_replaced) {
  try {
    const OutputFolder out(path, is_replaced);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kArgument);
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, std::string_view part) {
  CAPTURE(text);
  return text.find(part) != std::string::npos;
}

std::size_t num_entries(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

TEST_CASE("output folder: appears when it is published, under its name and with what was written") {
  const TempFolder folder;
  {
    OutputFolder out(folder / "new/", false);  // a slash at the end changes nothing
    write_file(out.partial() / "a", "1");
    CHECK(!fs::exists(folder / "new"));
    out.publish();
  }
  CHECK(read_file(folder / "new" / "a") == "1");
  CHECK(num_entries(folder / "new") == 1);
  CHECK(num_entries(folder.path()) == 1);
}

TEST_CASE("output folder: a run that fails leaves nothing behind") {
  const TempFolder folder;
  {
    const OutputFolder out(folder / "new", false);
    write_file(out.partial() / "a", "1");
  }
  CHECK(num_entries(folder.path()) == 0);
}

TEST_CASE("output folder: what a killed run left is removed, other people's folders of that name are not") {
  const TempFolder folder;
  fs::create_directory(folder / "new.partial");
  write_file(folder / "new.partial" / "letter", "x");
  CHECK(contains(refusal(folder / "new", true), "new.partial is in the way"));
  CHECK(read_file(folder / "new.partial" / "letter") == "x");

  write_file(folder / "new.partial" / ".treble-partial", "");
  OutputFolder out(folder / "new", false);
  CHECK(num_entries(out.partial()) == 1);
  out.publish();
  CHECK(num_entries(folder / "new") == 0);
}

TEST_CASE("output folder: one run at a time writes it") {
  const TempFolder folder;
  const OutputFolder out(folder / "new", false);
  CHECK(contains(refusal(folder / "new", false), "is being written by another run"));
  CHECK(fs::exists(out.partial()));
}

TEST_CASE("output folder: what is there is replaced only when asked, only if it is a release, and whole") {
  const TempFolder folder;
  const fs::path release = folder / "release";
  fs::create_directory(release);
  write_file(release / "config.json", "{}");
  write_file(release / "joint_head.safetensors", "old");
  write_file(release / "old", "old");
  CHECK(contains(refusal(release, false), "is there already; name another folder or give --force"));
  {
    const OutputFolder failing(release, true);
    write_file(failing.partial() / "config.json", "new");
  }
  CHECK(read_file(release / "joint_head.safetensors") == "old");
  {
    OutputFolder out(release, true);
    write_file(out.partial() / "config.json", "new");
    out.publish();
  }
  CHECK(read_file(release / "config.json") == "new");
  CHECK(num_entries(release) == 1);
  CHECK(num_entries(folder.path()) == 1);

  fs::create_directory(folder / "documents");
  write_file(folder / "documents" / "letter", "x");
  write_file(folder / "file", "x");
  fs::create_directory_symlink(release, folder / "link");
  for (const char* name : {"documents", "file", "link"})
    CHECK(contains(refusal(folder / name, true), "is not a release"));
}

TEST_CASE("output folder: a parent that is missing is named") {
  const TempFolder folder;
  CHECK(contains(refusal(folder / "none/new", false), "none is no folder"));
}

}  // namespace
}  // namespace treble
