#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/files.h"

namespace treble::cli {

/// One line of a file, without its line feed.
struct Line {
  std::string text;         ///< empty if the line is too long
  std::int64_t number = 0;  ///< from 1
  std::uint64_t end = 0;    ///< bytes of the file up to here, line feed included
  bool is_too_long = false;
  bool is_complete = false;  ///< a line feed ended it, not the end of the file

  /// Nothing but blanks, tabs and carriage returns.
  bool is_blank() const { return !is_too_long && text.find_first_not_of(" \t\r") == std::string::npos; }
};

/// Reads lines of any length and holds no more than one of them.
class LineReader {
 public:
  /// @param max_bytes  a longer line is read past and comes out empty, marked as too long
  explicit LineReader(File& file, std::size_t max_bytes = kMaxRequestBytes);

  /// @return false at the end of the file
  bool next(Line& line);
  /// The next line that is not blank.
  bool next_filled(Line& line);

 private:
  bool fill();

  File& file_;
  std::size_t max_bytes_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // what of the buffer has not been handed out
  std::int64_t number_ = 0;
  std::uint64_t consumed_ = 0;
};

}  // namespace treble::cli
