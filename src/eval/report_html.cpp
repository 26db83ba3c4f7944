#include <fmt/format.h>
#include <treble/version.h>

#include <algorithm>
#include <cmath>

#include "eval/eval.h"
#include "eval/svg_plot.h"

namespace treble::eval {
namespace {

constexpr const char* kHead = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>treble eval</title>
<style>
:root { --text: #1b1f24; --page: #ffffff; --faint: #667080; --grid: #dde2e8; --series0: #1f6fb4; --series1: #d1691a;
  --series2: #2c8a4b; --series3: #8a4fb0; --series4: #b3294e; --series5: #7a6a1c; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e8ee; --page: #14181d; --faint: #98a3b2; --grid: #303842;
  --series0: #5fa8e6; --series1: #f09a55; --series2: #62c484; --series3: #bd8ae0; --series4: #ec6a8c;
  --series5: #c9b65a; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page); max-width: 76em;
  margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; } .faint { color: var(--faint); }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2em .7em; text-align: right; border-bottom: 1px solid var(--grid); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } th { color: var(--faint); font-weight: 500; }
.plots { display: flex; flex-wrap: wrap; gap: 1.5em; } svg { width: 34em; max-width: 100%; height: auto; }
svg text { fill: var(--text); font: 12px system-ui, sans-serif; } svg text.title { font-weight: 600; font-size: 14px; }
svg .grid { stroke: var(--grid); } svg .axis { stroke: var(--faint); }
svg .diagonal { stroke: var(--faint); stroke-dasharray: 3 3; }
svg polyline { fill: none; stroke-width: 2; }
</style>
</head>
<body>
)";

std::string format(std::optional<double> value) {
  return value && std::isfinite(*value) ? fmt::format("{:.3g}", *value) : "–";
}

std::string percent(double share) {
  return fmt::format("{:.2f} %", 100 * share);
}

std::string format(const Proportion& proportion) {
  return fmt::format("{} ({:.1f}–{:.1f})", percent(proportion.share), 100 * proportion.low, 100 * proportion.high);
}

std::string row(const char* tag, const std::vector<std::string>& cells) {
  std::string out = "<tr>";
  for (const std::string& cell : cells) out += fmt::format("<{0}>{1}</{0}>", tag, escape_html(cell));
  return out + "</tr>\n";
}

std::string table(const std::vector<std::string>& titles, const std::vector<std::vector<std::string>>& rows) {
  std::string out = "<div class=\"wide\"><table>\n" + row("th", titles);
  for (const std::vector<std::string>& cells : rows) out += row("td", cells);
  return out + "</table></div>\n";
}

std::string heading(const std::string& text) {
  return fmt::format("<h2>{}</h2>\n", escape_html(text));
}

std::string label_of(const RunReport& run) {
  return run.is_noise_floor ? "noise floor: " + run.name : run.name;
}

std::vector<std::string> comparison_cells(const std::string& name, const SliceReport& slice) {
  const Comparison& c = *slice.comparison;
  return {name,
          std::to_string(slice.num_questions),
          format(c.agreement),
          percent(c.record_agreement.share),
          std::to_string(c.confident_flips),
          format(c.mean_drift),
          format(c.max_drift),
          format(c.mean_total_variation),
          format(c.mean_kl),
          format(c.logit_l2_centred),
          format(c.logit_l2_raw),
          format(c.hidden_mean),
          format(c.hidden_p95),
          format(c.mean_level_difference)};
}

const std::vector<std::string> kComparisonTitles = {
    "",        "questions", "decisions agree (95 %)", "records agree", "confident flips", "drift mean", "drift max",
    "TV mean", "KL mean",   "logit L2 centred",       "logit L2 raw",  "hidden L2 mean",  "hidden p95", "score |Δ|"};

std::string comparison_tables(const EvalReport& report) {
  std::vector<std::vector<std::string>> totals;
  for (const RunReport& run : report.runs) totals.push_back(comparison_cells(label_of(run), run.slices.front()));
  std::string out = heading("Against the reference") + table(kComparisonTitles, totals);
  for (const RunReport& run : report.runs) {
    std::vector<std::vector<std::string>> rows;
    for (const SliceReport& slice : run.slices) rows.push_back(comparison_cells(slice.name, slice));
    out += heading(label_of(run)) + table(kComparisonTitles, rows);
  }
  return out;
}

/// A row for each run and, with `has_all_slices`, each slice that has labels.
std::string quality_table(const EvalReport& report) {
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const RunReport& run, const std::string& name) {
    for (const SliceReport& slice : run.slices) {
      if (!slice.quality) continue;
      const Quality& q = *slice.quality;
      const bool has_pairs = slice.comparison && slice.comparison->mcnemar;
      rows.push_back(
          {name, slice.name, std::to_string(q.accuracy.total), format(q.accuracy), format(q.brier), format(q.ece),
           format(q.ece_equal_mass),
           has_pairs ? fmt::format("{} / {}", slice.comparison->only_reference_right, slice.comparison->only_run_right)
                     : "–",
           has_pairs ? format(slice.comparison->mcnemar) : "–"});
    }
  };
  add(report.reference, "reference: " + report.reference.name);
  for (const RunReport& run : report.runs) add(run, label_of(run));
  return heading("Against the labels") + table({"", "slice", "labelled", "accuracy (95 %)", "Brier", "ECE",
                                                "ECE, equal mass", "right alone: reference / run", "McNemar p"},
                                               rows);
}

Series reliability_series(const RunReport& run, const std::string& name) {
  Series series{.name = name, .points = {}, .is_dashed = run.is_noise_floor};
  for (const ReliabilityBin& bin : run.slices.front().quality->bins)
    if (bin.count > 0) series.points.emplace_back(bin.mean_confidence, bin.accuracy);
  return series;
}

std::string reliability_diagram(const EvalReport& report) {
  LinePlot plot{.title = "Reliability: is 0.8 right eight times in ten?",
                .x_label = "mean confidence of the bin",
                .y_label = "accuracy",
                .has_diagonal = true,
                .series = {reliability_series(report.reference, "reference")}};
  for (const RunReport& run : report.runs)
    if (!run.is_noise_floor) plot.series.push_back(reliability_series(run, run.name));
  return draw(plot);
}

std::string layer_curve(const EvalReport& report) {
  LinePlot plot{.title = "Hidden states: drift after each layer",
                .x_label = "layer (0: embedding; last: after the final norm)",
                .y_label = "relative L2, mean over tokens",
                .has_log_y = true,
                .has_whole_x = true,
                .series = {}};
  double lowest = 1, highest = 0;
  for (const RunReport& run : report.runs) {
    if (run.stages.empty()) continue;
    Series& series = plot.series.emplace_back(Series{.name = label_of(run), .points = {}});
    series.is_dashed = run.is_noise_floor;
    for (std::size_t i = 0; i < run.stages.size(); ++i) {
      const double value = run.stages[i].mean;
      series.points.emplace_back(static_cast<double>(i), value);
      if (value > 0 && std::isfinite(value)) {
        lowest = std::min(lowest, value);
        highest = std::max(highest, value);
      }
    }
    plot.x_max = std::max(plot.x_max, static_cast<double>(run.stages.size() - 1));
  }
  if (highest == 0) return "<p>The hidden states do not differ, or cannot be compared.</p>\n";
  plot.y_min = std::pow(10.0, std::floor(std::log10(lowest)));
  plot.y_max = std::max(10 * plot.y_min, std::pow(10.0, std::ceil(std::log10(highest))));
  return draw(plot);
}

std::string drift_histogram(const EvalReport& report) {
  BarPlot plot{.title = "Drift of the reference's decision: how far its probability moves",
               .x_label = "|Δp|, at least",
               .y_label = "share of decisions",
               .labels = {"0"},
               .series = {}};
  const std::vector<double>& edges = drift_edges();
  for (std::size_t i = 1; i + 1 < edges.size(); ++i) plot.labels.push_back(fmt::format("{:.0e}", edges[i]));
  for (const RunReport& run : report.runs) {
    std::vector<double> shares;
    for (const std::int64_t in_bin : run.slices.front().comparison->drift_counts)
      shares.push_back(static_cast<double>(in_bin) / static_cast<double>(report.num_questions));
    plot.series.emplace_back(label_of(run), std::move(shares));
  }
  return draw(plot);
}

std::string probabilities_text(const GroupReport& report, const std::vector<double>& p) {
  std::string out;
  for (std::size_t g = 0; g < p.size(); ++g)
    out += fmt::format("{}{} {:.4f}", g == 0 ? "" : ", ", report.groups[g].name, p[g]);
  return out;
}

std::string group_section(const RunReport& run, const GroupReport& report) {
  std::vector<std::vector<std::string>> groups, flips;
  for (const GroupDrift& group : report.groups)
    groups.push_back({group.name, format(group.mean_difference), format(group.max_difference),
                      report.num_labelled > 0 ? format(group.brier_reference) : "–",
                      report.num_labelled > 0 ? format(group.brier_model) : "–"});
  for (const GroupFlip& flip : report.flips)
    flips.push_back({flip.place, report.groups[flip.reference].name, report.groups[flip.model].name,
                     probabilities_text(report, flip.p), probabilities_text(report, flip.q)});
  std::string out =
      heading(fmt::format("Groups of \"{}\", {}", report.question_id, label_of(run))) +
      fmt::format("<p>Group decisions agree: {} of {}</p>\n", format(report.agreement), report.agreement.total) +
      table({"group", "|Δ| mean", "|Δ| max", "Brier reference", "Brier run"}, groups);
  if (!flips.empty()) out += "<p>Flips:</p>\n" + table({"record", "reference", "run", "p reference", "p run"}, flips);
  return out;
}

std::string summary(const EvalReport& report) {
  std::string out = fmt::format(
      "<h1>treble eval</h1>\n<p>Reference: {}<br>{} records, {} questions, {} of them labelled<br>"
      "<span class=\"faint\">treble {}, {}</span></p>\n",
      escape_html(report.reference.name), report.num_records, report.num_questions, report.num_labelled, version(),
      escape_html(report.device));
  if (report.num_image_records + report.num_video_records > 0)
    out += fmt::format("<p>Left out: {} records with images, {} with videos, which not every model reads.</p>\n",
                       report.num_image_records, report.num_video_records);
  return out;
}

}  // namespace

std::string to_html(const EvalReport& report) {
  std::string out = kHead + summary(report) + "<div class=\"plots\">\n";
  if (report.num_labelled > 0) out += reliability_diagram(report);
  if (!report.runs.empty()) out += layer_curve(report) + drift_histogram(report);
  out += "</div>\n";
  if (!report.runs.empty()) out += comparison_tables(report);
  if (report.num_labelled > 0) out += quality_table(report);
  for (const RunReport& run : report.runs)
    for (const GroupReport& groups : run.groups) out += group_section(run, groups);
  return out + "<p class=\"faint\">docs/quality.md explains each figure.</p>\n</body>\n</html>\n";
}

}  // namespace treble::eval
