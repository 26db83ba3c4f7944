#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace treble::eval {

/// Text with &, <, > and quotes as entities, control characters as U+FFFD: safe between and inside HTML tags.
std::string escape_html(std::string_view text);

/// A line with a mark at each point.
struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< x, y; points that a log axis cannot show are left out
  bool is_dashed = false;                         ///< for what others are held against
};

/// One plot. Values beyond the axes are drawn at their borders.
struct LinePlot {
  std::string title, x_label, y_label;
  double x_min = 0, x_max = 1;
  double y_min = 0, y_max = 1;
  bool has_log_y = false;     ///< whole decades; y_min and y_max above 0
  bool has_whole_x = false;   ///< x counts something: no ticks between whole numbers
  bool has_diagonal = false;  ///< the line y = x
  std::vector<Series> series;
};

/// The plot as an inline <svg> element with a legend and the points' values as tooltips. Colours are the CSS variables
/// --series0 to --series5, in turn.
std::string draw(const LinePlot& plot);

/// Bars side by side, a group of them for each label.
struct BarPlot {
  std::string title, x_label, y_label;
  std::vector<std::string> labels;
  std::vector<std::pair<std::string, std::vector<double>>> series;  ///< name, [label] heights of at least 0
};

std::string draw(const BarPlot& plot);

}  // namespace treble::eval
