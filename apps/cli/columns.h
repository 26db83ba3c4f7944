#pragma once

#include <limits>
#include <string>
#include <vector>

namespace treble::cli {

/// One column of a table for people.
struct Column {
  std::string title;
  bool is_right = false;                            ///< numbers stand at the right border
  int max_width = std::numeric_limits<int>::max();  ///< longer cells are cut
  bool is_bold = false;                             ///< where there is colour
};

struct TableStyle {
  int width = std::numeric_limits<int>::max();  ///< of a line: the last column is cut to what the others leave
  bool has_colour = false;
};

/// Rows of cells in aligned columns. Cells are made printable.
class Columns {
 public:
  explicit Columns(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// @param cells  one per column
  void add(const std::vector<std::string>& cells);

  /// A line of titles and one line per row, two blanks between columns.
  std::string print(const TableStyle& style = {}) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace treble::cli
