#include "eval/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace treble::eval {
namespace {

// Pixels of the drawing; the page scales it.
constexpr double kWidth = 640, kHeight = 340;
constexpr double kLeft = 70, kRight = 20, kTop = 34, kBottom = 52;
constexpr double kLegendLine = 18;
constexpr std::size_t kNumColours = 6;

/// From a range of values to a range of pixels.
struct Axis {
  double min, max;
  double first_pixel, last_pixel;
  bool is_log = false;
  bool is_whole = false;  // ticks at whole numbers only

  double place(double value) const {
    const double low = is_log ? std::log10(min) : min, high = is_log ? std::log10(max) : max;
    const double share = ((is_log ? std::log10(value) : value) - low) / (high - low);
    return std::lerp(first_pixel, last_pixel, std::clamp(share, 0.0, 1.0));
  }
};

std::string colour(std::size_t series) {
  return fmt::format("var(--series{})", series % kNumColours);
}

std::string text(double x, double y, std::string_view anchor, std::string_view content) {
  return fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>)", x, y, anchor, escape_html(content)) +
         "\n";
}

std::string line(std::string_view css_class, double x1, double y1, double x2, double y2) {
  return fmt::format(R"(<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>)", css_class, x1, y1, x2,
                     y2) +
         "\n";
}

/// A round step that cuts the range into four to ten pieces.
double round_step(double range) {
  const double decade = std::pow(10.0, std::floor(std::log10(range)));
  for (const double step : {0.1, 0.2, 0.5}) {
    if (range / (decade * step) <= 10) return decade * step;
  }
  return decade;
}

std::vector<double> ticks(const Axis& axis) {
  std::vector<double> values;
  if (axis.is_log) {
    const double last = std::floor(std::log10(axis.max) + 1e-9);
    for (double exponent = std::ceil(std::log10(axis.min) - 1e-9); exponent <= last; ++exponent)
      values.push_back(std::pow(10.0, exponent));
    return values;
  }
  const double step = std::max(round_step(axis.max - axis.min), axis.is_whole ? 1.0 : 0.0);
  const auto first = static_cast<long long>(std::ceil(axis.min / step - 1e-9));
  const auto last = static_cast<long long>(std::floor(axis.max / step + 1e-9));
  for (long long i = first; i <= last; ++i) values.push_back(static_cast<double>(i) * step);
  return values;
}

Axis y_axis(double min, double max, bool is_log) {
  return {.min = min, .max = max, .first_pixel = kHeight - kBottom, .last_pixel = kTop, .is_log = is_log};
}

/// The opening tag, titles and the y axis with its grid.
std::string open_plot(const std::string& title, const std::string& x_label, const std::string& y_label, const Axis& y,
                      std::size_t num_series) {
  const double height = kHeight + kLegendLine * static_cast<double>(num_series);
  std::string out =
      fmt::format(R"(<svg viewBox="0 0 {} {}" role="img" aria-label="{}">)", kWidth, height, escape_html(title)) + "\n";
  out += fmt::format(R"(<text class="title" x="{}" y="18" text-anchor="middle">{}</text>)", kWidth / 2,
                     escape_html(title)) +
         "\n";
  for (const double value : ticks(y)) {
    out += line("grid", kLeft, y.place(value), kWidth - kRight, y.place(value));
    out += text(kLeft - 6, y.place(value) + 4, "end", fmt::format("{:.3g}", value));
  }
  out += text(kWidth / 2, kHeight - 12, "middle", x_label);
  out += fmt::format(R"svg(<text transform="translate(16 {}) rotate(-90)" text-anchor="middle">{}</text>)svg",
                     kHeight / 2, escape_html(y_label)) +
         "\n";
  return out + line("axis", kLeft, kHeight - kBottom, kWidth - kRight, kHeight - kBottom);
}

std::string legend(std::size_t index, const std::string& name) {
  const double y = kHeight + kLegendLine * static_cast<double>(index);
  return fmt::format(R"(<rect x="{}" y="{}" width="12" height="12" style="fill:{}"/>)", kLeft, y, colour(index)) +
         "\n" + text(kLeft + 18, y + 10, "start", name);
}

std::string draw_series(const Series& series, std::size_t index, const Axis& x, const Axis& y) {
  std::string points, marks;
  for (const auto& [px, py] : series.points) {
    if (!std::isfinite(py) || (y.is_log && py <= 0)) continue;
    points += fmt::format("{:.1f},{:.1f} ", x.place(px), y.place(py));
    marks +=
        fmt::format(
            R"(<circle cx="{:.1f}" cy="{:.1f}" r="3.5" style="fill:{}"><title>{}: {:.4g}, {:.4g}</title></circle>)",
            x.place(px), y.place(py), colour(index), escape_html(series.name), px, py) +
        "\n";
  }
  return fmt::format(R"(<polyline points="{}" style="stroke:{}"{}/>)", points, colour(index),
                     series.is_dashed ? R"( stroke-dasharray="5 4")" : "") +
         "\n" + marks + legend(index, series.name);
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          out += "\xef\xbf\xbd";
        } else {
          out += c;
        }
    }
  }
  return out;
}

std::string draw(const LinePlot& plot) {
  const Axis x{.min = plot.x_min,
               .max = plot.x_max,
               .first_pixel = kLeft,
               .last_pixel = kWidth - kRight,
               .is_whole = plot.has_whole_x};
  const Axis y = y_axis(plot.y_min, plot.y_max, plot.has_log_y);
  std::string out = open_plot(plot.title, plot.x_label, plot.y_label, y, plot.series.size());
  for (const double value : ticks(x))
    out += text(x.place(value), kHeight - kBottom + 16, "middle", fmt::format("{:.3g}", value));
  if (plot.has_diagonal) out += line("diagonal", x.place(x.min), y.place(x.min), x.place(x.max), y.place(x.max));
  for (std::size_t i = 0; i < plot.series.size(); ++i) out += draw_series(plot.series[i], i, x, y);
  return out + "</svg>\n";
}

std::string draw(const BarPlot& plot) {
  double highest = 0;
  for (const auto& series : plot.series)
    for (const double height : series.second) highest = std::max(highest, height);
  const Axis y = y_axis(0, highest > 0 ? highest : 1, false);
  std::string out = open_plot(plot.title, plot.x_label, plot.y_label, y, plot.series.size());

  const auto num_labels = static_cast<double>(plot.labels.size());
  const double group_width = (kWidth - kLeft - kRight) / num_labels;
  const double bar_width = 0.8 * group_width / static_cast<double>(std::max<std::size_t>(1, plot.series.size()));
  for (std::size_t l = 0; l < plot.labels.size(); ++l) {
    const double left = kLeft + group_width * static_cast<double>(l);
    out += text(left + group_width / 2, kHeight - kBottom + 16, "middle", plot.labels[l]);
    for (std::size_t s = 0; s < plot.series.size(); ++s) {
      const auto& [name, heights] = plot.series[s];
      const double top = y.place(heights[l]);
      out += fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" style="fill:{}">)"
                         R"(<title>{}, {}: {:.4g}</title></rect>)",
                         left + 0.1 * group_width + bar_width * static_cast<double>(s), top, bar_width,
                         y.first_pixel - top, colour(s), escape_html(name), escape_html(plot.labels[l]), heights[l]) +
             "\n";
    }
  }
  for (std::size_t s = 0; s < plot.series.size(); ++s) out += legend(s, plot.series[s].first);
  return out + "</svg>\n";
}

}  // namespace treble::eval
