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

TEST_CASE("mapped_file: bytes of the file are read without the mapping, and others are not taken for its own") {
  const TempFolder folder;
  const MappedFile file(folder.write("digits", "0123456789"));
  const std::byte* begin = file.bytes().data();
  const std::optional<FileRange> range = file.range_of(begin + 3, 4);
  REQUIRE(range);
  std::string read(4, ' ');
  read_bytes(*range, 4, read.data());
  CHECK(read == "3456");
  CHECK(file.range_of(begin, 10));
  CHECK_FALSE(file.range_of(begin, 11));
  CHECK_FALSE(file.range_of(begin + 10, 1));
  CHECK_FALSE(file.range_of(read.data(), 1));
  CHECK_FALSE(MappedFile().range_of(begin, 1));
}

TEST_CASE("mapped_file: a file that was cut after it was opened is refused, not read past its end") {
  const TempFolder folder;
  const MappedFile file(folder.write("digits", "0123456789"));
  std::string read(4, ' ');
  std::filesystem::resize_file(folder.path() / "digits", 5);
  CHECK_THROWS_WITH_AS(read_bytes(*file.range_of(file.bytes().data() + 3, 4), 4, read.data()),
                       doctest::Contains("cannot be read at byte 5: it ends there"), Error);
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
