#include "cli/line_reader.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

namespace treble::cli {
namespace {

/// A file with the given text, removed at the end of the scope.
class TextFile {
 public:
  explicit TextFile(std::string_view text)
      : path_(std::filesystem::temp_directory_path() / ("treble_line_reader_" + std::to_string(::getpid()))) {
    std::filesystem::remove(path_);
    File file = File::output(path_.string());
    file.write(text);
    file.keep();
  }
  ~TextFile() { std::filesystem::remove(path_); }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;

  File open() const { return File::input(path_.string()); }

 private:
  std::filesystem::path path_;
};

std::vector<Line> all_lines(std::string_view text, std::size_t max_bytes = kMaxRequestBytes) {
  const TextFile text_file(text);
  File file = text_file.open();
  LineReader reader(file, max_bytes);
  std::vector<Line> lines;
  for (Line line; reader.next(line);) lines.push_back(line);
  return lines;
}

TEST_CASE("line_reader: lines come with their number and their end in the file") {
  const auto lines = all_lines("ab\n\nc\n");
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].text == "ab");
  CHECK(lines[0].end == 3);
  CHECK(lines[1].is_blank());
  CHECK(lines[2].text == "c");
  CHECK(lines[2].number == 3);
  CHECK(lines[2].end == 6);
  CHECK(lines[2].is_complete);
}

TEST_CASE("line_reader: a last line without a line feed is a line, but not complete") {
  const auto lines = all_lines("ab\ncd");
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].is_complete);
  CHECK(lines[1].text == "cd");
  CHECK_FALSE(lines[1].is_complete);
}

TEST_CASE("line_reader: an empty file has no line") {
  CHECK(all_lines("").empty());
}

TEST_CASE("line_reader: lines longer than a buffer come whole") {
  const std::string long_line(300'000, 'x');
  const auto lines = all_lines(long_line + "\nend\n" + long_line);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].text == long_line);
  CHECK(lines[1].text == "end");
  CHECK(lines[2].text == long_line);
}

TEST_CASE("line_reader: a line over the limit is read past, and the next one is found") {
  const auto lines = all_lines("12345\n" + std::string(200'000, 'x') + "\n123456\n1\n", 5);
  REQUIRE(lines.size() == 4);
  CHECK(lines[0].text == "12345");
  CHECK_FALSE(lines[0].is_too_long);
  CHECK(lines[1].is_too_long);
  CHECK(lines[1].text.empty());
  CHECK_FALSE(lines[1].is_blank());
  CHECK(lines[2].is_too_long);
  CHECK(lines[3].text == "1");
  CHECK(lines[3].end == 6 + 200'001 + 7 + 2);
}

TEST_CASE("line_reader: blank lines are skipped on request and counted") {
  const TextFile text_file("\n \t\r\na\n\nb");
  File file = text_file.open();
  LineReader reader(file);
  Line line;
  REQUIRE(reader.next_filled(line));
  CHECK(line.text == "a");
  CHECK(line.number == 3);
  REQUIRE(reader.next_filled(line));
  CHECK(line.text == "b");
  CHECK_FALSE(reader.next_filled(line));
}

}  // namespace
}  // namespace treble::cli
