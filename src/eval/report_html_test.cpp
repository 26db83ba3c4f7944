#include <doctest/doctest.h>

#include "eval/eval.h"

namespace treble::eval {
namespace {

/// A report of one model on one labelled question.
EvalReport small_report() {
  EvalReport report;
  report.num_records = report.num_questions = report.num_labelled = 1;
  Quality quality;
  quality.accuracy = proportion(1, 1);
  quality.bins = reliability_bins(std::vector{0.8}, {true});
  report.reference.name = "<reference>";
  report.reference.slices = {{.name = "total", .num_questions = 1, .quality = quality, .comparison = std::nullopt}};
  Comparison comparison;
  comparison.drift_counts.assign(drift_edges().size() - 1, 0);
  RunReport& run = report.runs.emplace_back();
  run.name = "a & b";
  run.slices = {{.name = "total", .num_questions = 1, .quality = quality, .comparison = comparison}};
  run.stages = {{.stage = "embed"}, {.stage = "layer00.out", .mean = 0.01, .p95 = 0.02, .aggregate = 0.01}};
  return report;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST_CASE("report_html: a page of three plots that loads nothing and runs nothing") {
  const std::string page = to_html(small_report());
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK(count(page, "<svg") == 3);
  CHECK(count(page, "</svg>") == 3);
  CHECK(count(page, "<script") == 0);
  CHECK(count(page, "http") == 0);
  CHECK(count(page, "&lt;reference&gt;") > 0);
  CHECK(count(page, "<reference>") == 0);
  CHECK(count(page, "a &amp; b") > 0);
}

TEST_CASE("report_html: without labels, or without another run, their plots and tables are left out") {
  EvalReport report = small_report();
  report.num_labelled = 0;
  CHECK(count(to_html(report), "<svg") == 2);
  report = small_report();
  report.runs.clear();
  CHECK(count(to_html(report), "<svg") == 1);
  CHECK(count(to_html(report), "Against the reference") == 0);
}

TEST_CASE("report_json: what does not exist is null") {
  const Json json = to_json(small_report());
  const Json& run = json.find("runs")->as_array().front();
  const Json& slice = run.find("slices")->as_array().front();
  CHECK(slice.find("comparison")->find("mcnemar_p")->is_null());
  CHECK(slice.find("quality")->find("accuracy")->find("count")->as_double() == 1);
  CHECK(json.find("reference")->find("slices")->as_array().front().find("comparison")->is_null());
}

}  // namespace
}  // namespace treble::eval
