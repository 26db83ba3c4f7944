#include "eval/svg_plot.h"

#include <doctest/doctest.h>

namespace treble::eval {
namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST_CASE("svg_plot: text cannot become markup") {
  CHECK(escape_html("<a href=\"x\" b='y'>&\n") == "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;\xef\xbf\xbd");
  CHECK(escape_html("é 日本") == "é 日本");
}

TEST_CASE("svg_plot: a line plot has a mark for every point that its axis can show") {
  const LinePlot plot{.title = "a < b",
                      .x_max = 2,
                      .y_min = 1e-3,
                      .y_max = 1,
                      .has_log_y = true,
                      .has_whole_x = true,
                      .series = {{.name = "m", .points = {{0, 0.1}, {1, 0}, {2, 5}}}}};
  const std::string svg = draw(plot);
  CHECK(count(svg, "<circle") == 2);
  CHECK(count(svg, "a &lt; b") == 2);
  CHECK(count(svg, "class=\"grid\"") == 4);
  CHECK(svg.find("nan") == std::string::npos);
  CHECK(svg.find(">-0<") == std::string::npos);
  CHECK(count(svg, ">1.5<") == 0);
  // 0.1 is two thirds up; 5 is drawn at the upper border.
  CHECK(count(svg, "cx=\"70.0\" cy=\"118.7\"") == 1);
  CHECK(count(svg, "cx=\"620.0\" cy=\"34.0\"") == 1);
}

TEST_CASE("svg_plot: a bar plot has a bar for every series and label, and the highest fills the plot") {
  const BarPlot plot{.title = "t", .labels = {"x", "y"}, .series = {{"a", {0, 1}}, {"b", {2, 0.5}}}};
  const std::string svg = draw(plot);
  CHECK(count(svg, "<rect") == 4 + 2);
  CHECK(count(svg, "height=\"254.0\"") == 1);
  CHECK(draw(BarPlot{.labels = {"x"}, .series = {{"a", {0}}}}).find("nan") == std::string::npos);
}

}  // namespace
}  // namespace treble::eval
