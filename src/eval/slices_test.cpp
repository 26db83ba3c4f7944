#include "eval/slices.h"

#include <doctest/doctest.h>

#include <cmath>

namespace treble::eval {
namespace {

using doctest::Approx;

LabelledRecord record_of(const char* set, const char* line) {
  LabelledRecord record = parse_record(line, "line");
  record.set = set;
  return record;
}

/// Two records: a noul and a score, then a noul.
std::vector<LabelledRecord> two_records() {
  return {
      record_of("a", R"({"request": {"state": "s", "questions": {"n": {"type": "noul"},
                             "s": {"type": "score", "criteria": ["lo", "hi"]}}}, "answers": {"n": true, "s": 1}})"),
      record_of("b", R"({"request": {"state": "s", "questions": {"n": {"type": "noul"}}}, "answers": {"n": false}})")};
}

/// Logits of a distribution.
std::vector<double> logits(double p) {
  return {std::log(p), std::log(1 - p)};
}

RunResult run_of(double first, double second, double third) {
  return {.logits = {{logits(first), logits(second)}, {logits(third)}}, .stages = {}};
}

constexpr std::size_t kTokens[] = {0, 2, 3};

TEST_CASE("slices: the total, types and sets, and no kind that would repeat the total") {
  std::vector<LabelledRecord> records = two_records();
  std::vector<std::string> names;
  for (const Slice& slice : make_slices(records)) names.push_back(slice.name);
  CHECK(names == std::vector<std::string>{"total", "type noul", "type score", "set a", "set b"});
  records.pop_back();
  records.front().request.questions.pop_back();
  CHECK(make_slices(records).size() == 1);
}

TEST_CASE("slices: a run against the reference") {
  const std::vector<LabelledRecord> records = two_records();
  const RunResult reference = run_of(0.95, 0.6, 0.7), run = run_of(0.4, 0.5, 0.8);
  const std::vector<Slice> slices = make_slices(records);
  const Comparison total = compare(slices[0], records, reference, run, kTokens);
  // Of a tie the first option is the decision, so the score agrees.
  CHECK(total.agreement.count == 2);
  CHECK(total.agreement.total == 3);
  CHECK(total.record_agreement.count == 1);
  CHECK(total.record_agreement.total == 2);
  CHECK(total.confident_flips == 1);
  CHECK(total.mean_drift == Approx((0.55 + 0.1 + 0.1) / 3));
  CHECK(total.max_drift == Approx(0.55));
  CHECK(total.mean_total_variation == Approx(0.25));
  CHECK(total.mean_level_difference.value() == Approx(0.1));
  CHECK_FALSE(total.hidden_mean);
  // Right alone: the reference in the first question; both miss the others.
  CHECK(total.only_reference_right == 1);
  CHECK(total.only_run_right == 0);
  CHECK(total.mcnemar.value() == 1);
  CHECK_FALSE(compare(slices[1], records, reference, run, kTokens).mean_level_difference);
}

TEST_CASE("slices: a run against itself differs in nothing") {
  const std::vector<LabelledRecord> records = two_records();
  const RunResult run = run_of(0.95, 0.6, 0.7);
  const Comparison total = compare(make_slices(records)[0], records, run, run, kTokens);
  CHECK(total.agreement.share == 1);
  CHECK(total.mean_kl == 0);
  CHECK(total.logit_l2_raw == 0);
  CHECK(total.drift_counts.front() == 3);
}

TEST_CASE("slices: hidden-state drift is of the tokens of the slice's records") {
  const std::vector<LabelledRecord> records = two_records();
  const RunResult reference = run_of(0.95, 0.6, 0.7);
  RunResult run = reference;
  run.stages = {{.stage = "hidden", .sums = {}, .per_token = {0.1f, 0.3f, 0.8f}}};
  const std::vector<Slice> slices = make_slices(records);
  CHECK(compare(slices[0], records, reference, run, kTokens).hidden_mean.value() == Approx(0.4));
  CHECK_FALSE(compare(slices[1], records, reference, run, kTokens).hidden_mean);
  CHECK(compare(slices[3], records, reference, run, kTokens).hidden_mean.value() == Approx(0.2));
  CHECK(compare(slices[4], records, reference, run, kTokens).hidden_p95.value() == Approx(0.8));
}

TEST_CASE("slices: a run against the labels") {
  const std::vector<LabelledRecord> records = two_records();
  const Slice total = make_slices(records)[0];
  const Quality quality = measure_quality(total, records, run_of(0.95, 0.6, 0.7)).value();
  CHECK(quality.accuracy.count == 1);
  CHECK(quality.accuracy.total == 3);
  CHECK(quality.brier == Approx(2 * (0.05 * 0.05 + 0.6 * 0.6 + 0.7 * 0.7) / 3));
  // 0.95, 0.6 and 0.7 lie in three bins; only the first is right.
  CHECK(quality.ece == Approx((0.05 + 0.6 + 0.7) / 3));
  std::vector<LabelledRecord> unlabelled = records;
  for (LabelledRecord& record : unlabelled) record.labels.assign(record.labels.size(), std::nullopt);
  CHECK_FALSE(measure_quality(total, unlabelled, run_of(0.95, 0.6, 0.7)));
}

}  // namespace
}  // namespace treble::eval
