#include "eval/slices.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace treble::eval {
namespace {

constexpr double kConfident = 0.9;

/// Adds one slice for each name that `name_of` gives, in order of first appearance; "" belongs to none.
template <typename NameOf>
void add_slices(std::vector<Slice>& slices, std::span<const LabelledRecord> records, bool has_whole_records,
                const NameOf& name_of) {
  std::vector<Slice> found;
  for (std::size_t r = 0; r < records.size(); ++r) {
    for (std::size_t q = 0; q < records[r].request.questions.size(); ++q) {
      const std::string name = name_of(records[r], q);
      if (name.empty()) continue;
      auto slice = std::ranges::find(found, name, &Slice::name);
      if (slice == found.end()) {
        found.push_back({.name = name, .questions = {}, .has_whole_records = has_whole_records});
        slice = std::prev(found.end());
      }
      slice->questions.push_back({r, q});
    }
  }
  if (found.size() == 1 && found.front().questions.size() == slices.front().questions.size()) return;
  std::ranges::move(found, std::back_inserter(slices));
}

/// Labels of the slice's questions and what one run says to them.
struct Gold {
  std::vector<double> confidences;
  std::vector<bool> is_right;
  double brier = 0;  // sum
};

Gold judge(const Slice& slice, std::span<const LabelledRecord> records, const RunResult& run) {
  Gold gold;
  for (const auto& [r, q] : slice.questions) {
    const std::optional<std::size_t> label = records[r].labels[q];
    if (!label) continue;
    const std::vector<double> p = softmax(run.logits[r][q]);
    gold.confidences.push_back(largest(p));
    gold.is_right.push_back(argmax(p) == *label);
    gold.brier += brier(p, *label);
  }
  return gold;
}

/// Per-question figures of two runs before they are averaged.
struct Differences {
  std::vector<double> drift, total_variation, kl, level;
  SquaredError raw, centred;
};

void add_hidden(Comparison& result, const Slice& slice, const RunResult& run, std::span<const std::size_t> cu_tokens) {
  if (!slice.has_whole_records || run.stages.empty()) return;
  const std::vector<float>& per_token = run.stages.back().per_token;
  std::vector<double> values;
  for (std::size_t i = 0; i < slice.questions.size(); ++i) {
    const std::size_t record = slice.questions[i].record;
    if (i > 0 && slice.questions[i - 1].record == record) continue;
    for (std::size_t t = cu_tokens[record]; t < cu_tokens[record + 1]; ++t) values.push_back(per_token[t]);
  }
  result.hidden_mean = mean(values);
  result.hidden_p95 = quantile(std::move(values), 0.95);
}

void add_mcnemar(Comparison& result, const Gold& reference, const Gold& run) {
  if (reference.is_right.empty()) return;
  for (std::size_t i = 0; i < reference.is_right.size(); ++i) {
    result.only_reference_right += reference.is_right[i] && !run.is_right[i] ? 1 : 0;
    result.only_run_right += !reference.is_right[i] && run.is_right[i] ? 1 : 0;
  }
  result.mcnemar = mcnemar_p(result.only_reference_right, result.only_run_right);
}

}  // namespace

std::vector<Slice> make_slices(std::span<const LabelledRecord> records) {
  std::vector<Slice> slices{{.name = "total", .questions = {}, .has_whole_records = true}};
  for (std::size_t r = 0; r < records.size(); ++r)
    for (std::size_t q = 0; q < records[r].request.questions.size(); ++q) slices.front().questions.push_back({r, q});

  add_slices(slices, records, false, [](const LabelledRecord& record, std::size_t q) {
    return "type " + std::string(to_string(record.request.questions[q].type));
  });
  add_slices(slices, records, true,
             [](const LabelledRecord& record, std::size_t) { return record.set.empty() ? "" : "set " + record.set; });
  add_slices(slices, records, true, [](const LabelledRecord& record, std::size_t) {
    return record.family.empty() ? "" : "family " + record.family;
  });
  return slices;
}

const std::vector<double>& drift_edges() {
  static const std::vector<double> edges = [] {
    std::vector<double> made{0};
    for (int half_decade = -12; half_decade <= 0; ++half_decade) made.push_back(std::pow(10.0, half_decade / 2.0));
    return made;
  }();
  return edges;
}

std::optional<Quality> measure_quality(const Slice& slice, std::span<const LabelledRecord> records,
                                       const RunResult& run) {
  const Gold gold = judge(slice, records, run);
  if (gold.is_right.empty()) return std::nullopt;
  Quality quality;
  const auto count = static_cast<std::int64_t>(gold.is_right.size());
  quality.accuracy = proportion(std::ranges::count(gold.is_right, true), count);
  quality.brier = gold.brier / static_cast<double>(count);
  quality.bins = reliability_bins(gold.confidences, gold.is_right);
  quality.ece = calibration_error(quality.bins);
  quality.ece_equal_mass = calibration_error(equal_mass_bins(gold.confidences, gold.is_right));
  return quality;
}

Comparison compare(const Slice& slice, std::span<const LabelledRecord> records, const RunResult& reference,
                   const RunResult& run, std::span<const std::size_t> cu_tokens) {
  Comparison result;
  Differences differences;
  std::int64_t num_equal = 0;
  std::map<std::size_t, bool> is_record_equal;
  for (const auto& [r, q] : slice.questions) {
    const std::vector<double>&z = reference.logits[r][q], &z_run = run.logits[r][q];
    const std::vector<double> p = softmax(z), p_run = softmax(z_run);
    const std::size_t decision = argmax(p);
    const bool is_equal = argmax(p_run) == decision;
    num_equal += is_equal ? 1 : 0;
    result.confident_flips += !is_equal && p[decision] >= kConfident ? 1 : 0;
    auto& is_whole_record_equal = is_record_equal.try_emplace(r, true).first->second;
    is_whole_record_equal = is_whole_record_equal && is_equal;

    differences.drift.push_back(std::abs(p_run[decision] - p[decision]));
    differences.total_variation.push_back(total_variation(p, p_run));
    differences.kl.push_back(kl_divergence(z, z_run));
    differences.raw += squared_error(z, z_run);
    differences.centred += centred_squared_error(z, z_run);
    if (records[r].request.questions[q].type == QuestionType::kScore)
      differences.level.push_back(std::abs(expected_level(p_run) - expected_level(p)));
  }
  result.agreement = proportion(num_equal, static_cast<std::int64_t>(slice.questions.size()));
  result.record_agreement =
      proportion(std::ranges::count_if(is_record_equal, [](const auto& record) { return record.second; }),
                 static_cast<std::int64_t>(is_record_equal.size()));
  result.mean_drift = mean(differences.drift);
  result.max_drift = largest(differences.drift);
  result.mean_total_variation = mean(differences.total_variation);
  result.mean_kl = mean(differences.kl);
  result.logit_l2_raw = differences.raw.relative_l2();
  result.logit_l2_centred = differences.centred.relative_l2();
  if (!differences.level.empty()) result.mean_level_difference = mean(differences.level);
  result.drift_counts = histogram(differences.drift, drift_edges());
  add_hidden(result, slice, run, cu_tokens);
  add_mcnemar(result, judge(slice, records, reference), judge(slice, records, run));
  return result;
}

}  // namespace treble::eval
