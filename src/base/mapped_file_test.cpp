#include "base/mapped_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <treble/error.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>

#include "base/testing/temp_folder.h"

namespace treble {
namespace {

namespace fs = std::filesystem;
using testing::TempFolder;

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

void check_refused(const fs::path& path, const std::string& reason) {
  try {
    const MappedFile file(path);
    FAIL("mapped ", path.string());
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kCheckpoint);
    CHECK(error.what() == "checkpoint: " + path.string() + " " + reason);
  }
}

TEST_CASE("mapped_file: the bytes of a file are all there, and stay when the object moves") {
  const TempFolder folder;
  const std::string content("ab\0\xff\n", 5);
  MappedFile file(folder.write("five", content));
  const std::byte* begin = file.bytes().data();
  CHECK(text_of(file) == content);

  MappedFile moved = std::move(file);
  CHECK(moved.bytes().data() == begin);
  CHECK(text_of(moved) == content);

  MappedFile other(folder.write("one", "x"));
  other = std::move(moved);
  CHECK(other.bytes().data() == begin);
  CHECK(read_text_file(folder.path() / "five") == content);
}

TEST_CASE("mapped_file: an empty file has no bytes") {
  const TempFolder folder;
  const fs::path path = folder.write("empty", "");
  CHECK(MappedFile(path).bytes().empty());
  CHECK(read_text_file(path).empty());
  CHECK(MappedFile().bytes().empty());
}

TEST_CASE("mapped_file: bytes whose memory was let go are read again") {
  const TempFolder folder;
  std::string content(50000, 'a');
  content[30000] = 'b';
  const MappedFile file(folder.write("large", content));
  CHECK(text_of(file) == content);
  drop_resident_pages(file.bytes().data() + 1, 49998);
  drop_resident_pages(file.bytes().data() + 5, 1);  // less than a page: nothing to let go
  CHECK(text_of(file) == content);
}

TEST_CASE("mapped_file: what is not there or no regular file is named in the error") {
  const TempFolder folder;
  check_refused(folder.path() / "absent", "cannot be opened: No such file or directory");
  check_refused(folder.path(), "is not a regular file");
  const fs::path pipe = folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  check_refused(pipe, "is not a regular file");
  CHECK_THROWS_AS(read_text_file(folder.path() / "absent"), Error);
}

}  // namespace
}  // namespace treble
