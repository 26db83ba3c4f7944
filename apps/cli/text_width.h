#pragma once

#include <string>
#include <string_view>

namespace treble::cli {

// Text from requests and files, as a terminal shows it: one line, in columns. Text is UTF-8.

/// The text without what could move the cursor or reorder the line: line breaks and tabs become blanks; other control
/// characters, bidirectional overrides and bytes that are not UTF-8 become U+FFFD.
std::string printable(std::string_view text);

/// Columns that printable text takes: two for wide characters, none for combining marks.
int display_width(std::string_view text);

/// The text if it fits, or else its beginning and "…": at most `width` columns.
std::string cut_to_width(std::string_view text, int width);

}  // namespace treble::cli
