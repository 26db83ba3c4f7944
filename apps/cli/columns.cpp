#include "cli/columns.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "cli/text_width.h"

namespace treble::cli {
namespace {

constexpr int kGap = 2;
constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kFaint = "\x1b[2m";
constexpr std::string_view kPlain = "\x1b[0m";

/// A cell with the blanks that fill its column.
struct Padded {
  std::string before, text, after;
};

Padded pad(const std::string& cell, int width, bool is_right) {
  Padded padded{.before = {}, .text = cut_to_width(cell, width), .after = {}};
  const int blanks = std::max(0, width - display_width(padded.text));
  (is_right ? padded.before : padded.after).assign(static_cast<std::size_t>(blanks), ' ');
  return padded;
}

void trim_right(std::string& line) {
  line.erase(line.find_last_not_of(' ') + 1);
}

}  // namespace

void Columns::add(const std::vector<std::string>& cells) {
  std::vector<std::string>& row = rows_.emplace_back();
  for (const std::string& cell : cells) row.push_back(printable(cell));
}

std::string Columns::print(const TableStyle& style) const {
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);

  std::vector<int> widths;
  int left = style.width;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    int width = display_width(titles[c]);
    for (const auto& row : rows_) width = std::max(width, display_width(row[c]));
    width = std::min(width, columns_[c].max_width);
    if (c + 1 == columns_.size()) width = std::clamp(left, 0, width);
    widths.push_back(width);
    left -= width + kGap;
  }

  const auto print_row = [&](const std::vector<std::string>& cells, bool is_title) {
    std::string line;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const Padded cell = pad(cells[c], widths[c], columns_[c].is_right);
      const bool is_marked = style.has_colour && (is_title || columns_[c].is_bold) && !cell.text.empty();
      line += cell.before;
      line += is_marked ? is_title ? kFaint : kBold : "";
      line += cell.text;
      line += is_marked ? kPlain : "";
      line += cell.after;
      line.append(kGap, ' ');
    }
    trim_right(line);
    return line + '\n';
  };

  std::string out = print_row(titles, true);
  for (const auto& row : rows_) out += print_row(row, false);
  return out;
}

}  // namespace treble::cli
