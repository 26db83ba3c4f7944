#include <cmath>
#include <utility>

#include "eval/eval.h"

namespace treble::eval {
namespace {

Json number(double value) {
  return std::isfinite(value) ? Json::real(value) : Json();
}

Json number(std::optional<double> value) {
  return value ? number(*value) : Json();
}

Json count(std::int64_t value) {
  return Json::integer(value);
}

Json count(std::size_t value) {
  return Json::integer(static_cast<long long>(value));
}

Json numbers(const std::vector<double>& values) {
  Json::Array array;
  for (const double value : values) array.push_back(number(value));
  return array;
}

Json to_json(const Proportion& proportion) {
  return Json::Object{{"count", count(proportion.count)},
                      {"total", count(proportion.total)},
                      {"share", number(proportion.share)},
                      {"low", number(proportion.low)},
                      {"high", number(proportion.high)}};
}

Json to_json(const Quality& quality) {
  Json::Array bins;
  for (const ReliabilityBin& bin : quality.bins)
    bins.push_back(Json::Object{{"low", number(bin.low)},
                                {"high", number(bin.high)},
                                {"count", count(bin.count)},
                                {"confidence", number(bin.mean_confidence)},
                                {"accuracy", number(bin.accuracy)}});
  return Json::Object{{"accuracy", to_json(quality.accuracy)},
                      {"brier", number(quality.brier)},
                      {"ece", number(quality.ece)},
                      {"ece_equal_mass", number(quality.ece_equal_mass)},
                      {"bins", std::move(bins)}};
}

Json to_json(const Comparison& comparison) {
  Json::Array drift_counts;
  for (const std::int64_t in_bin : comparison.drift_counts) drift_counts.push_back(count(in_bin));
  return Json::Object{{"agreement", to_json(comparison.agreement)},
                      {"record_agreement", to_json(comparison.record_agreement)},
                      {"confident_flips", count(comparison.confident_flips)},
                      {"drift_mean", number(comparison.mean_drift)},
                      {"drift_max", number(comparison.max_drift)},
                      {"total_variation_mean", number(comparison.mean_total_variation)},
                      {"kl_mean", number(comparison.mean_kl)},
                      {"logit_l2_raw", number(comparison.logit_l2_raw)},
                      {"logit_l2_centred", number(comparison.logit_l2_centred)},
                      {"hidden_l2_mean", number(comparison.hidden_mean)},
                      {"hidden_l2_p95", number(comparison.hidden_p95)},
                      {"score_difference_mean", number(comparison.mean_level_difference)},
                      {"only_reference_right", count(comparison.only_reference_right)},
                      {"only_run_right", count(comparison.only_run_right)},
                      {"mcnemar_p", number(comparison.mcnemar)},
                      {"drift_counts", std::move(drift_counts)}};
}

Json to_json(const GroupReport& report) {
  Json::Object groups;
  for (const GroupDrift& group : report.groups)
    groups.emplace_back(
        group.name, Json::Object{{"difference_mean", number(group.mean_difference)},
                                 {"difference_max", number(group.max_difference)},
                                 {"brier_reference", report.num_labelled > 0 ? number(group.brier_reference) : Json()},
                                 {"brier_run", report.num_labelled > 0 ? number(group.brier_model) : Json()}});
  Json::Array flips;
  for (const GroupFlip& flip : report.flips)
    flips.push_back(Json::Object{{"record", flip.place},
                                 {"reference", report.groups[flip.reference].name},
                                 {"run", report.groups[flip.model].name},
                                 {"reference_probabilities", numbers(flip.p)},
                                 {"run_probabilities", numbers(flip.q)}});
  return Json::Object{{"question", report.question_id},
                      {"agreement", to_json(report.agreement)},
                      {"labelled", count(report.num_labelled)},
                      {"groups", std::move(groups)},
                      {"flips", std::move(flips)}};
}

Json to_json(const RunReport& run) {
  Json::Array slices, stages, groups;
  for (const SliceReport& slice : run.slices)
    slices.push_back(Json::Object{{"slice", slice.name},
                                  {"questions", count(slice.num_questions)},
                                  {"quality", slice.quality ? to_json(*slice.quality) : Json()},
                                  {"comparison", slice.comparison ? to_json(*slice.comparison) : Json()}});
  for (const StageReport& stage : run.stages)
    stages.push_back(Json::Object{{"stage", stage.stage},
                                  {"mean", number(stage.mean)},
                                  {"p95", number(stage.p95)},
                                  {"aggregate", number(stage.aggregate)}});
  for (const GroupReport& group : run.groups) groups.push_back(to_json(group));
  return Json::Object{{"name", run.name},
                      {"is_noise_floor", run.is_noise_floor},
                      {"slices", std::move(slices)},
                      {"hidden_l2", std::move(stages)},
                      {"groups", std::move(groups)}};
}

}  // namespace

Json to_json(const EvalReport& report) {
  Json::Array runs;
  for (const RunReport& run : report.runs) runs.push_back(to_json(run));
  return Json::Object{{"device", report.device},
                      {"records", count(report.num_records)},
                      {"skipped_image_records", count(report.num_image_records)},
                      {"skipped_video_records", count(report.num_video_records)},
                      {"questions", count(report.num_questions)},
                      {"labelled", count(report.num_labelled)},
                      {"drift_edges", numbers(drift_edges())},
                      {"reference", to_json(report.reference)},
                      {"runs", std::move(runs)}};
}

}  // namespace treble::eval
