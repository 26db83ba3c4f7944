#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eval/metrics.h"
#include "eval/records.h"
#include "eval/runs.h"

namespace treble::eval {

/// A question by its record and its place in it.
struct QuestionIndex {
  std::size_t record = 0, question = 0;
};

/// Questions that are reported together.
struct Slice {
  std::string name;                      ///< "total", "type noul", "set values", "family invoices"
  std::vector<QuestionIndex> questions;  ///< in the order of the files, a record's questions side by side
  bool has_whole_records = false;        ///< every question of each of its records is in it
};

/// The total, then each question type, set and family that occurs. A kind with one member that is the total is left
/// out.
std::vector<Slice> make_slices(std::span<const LabelledRecord> records);

/// One run against the labels.
struct Quality {
  Proportion accuracy;  ///< of the labelled questions
  double brier = 0;     ///< mean of sum_k (p_k - y_k)^2
  double ece = 0, ece_equal_mass = 0;
  std::vector<ReliabilityBin> bins;  ///< 15 of equal width: what ece is made of
};

/// One run against the reference: docs/quality.md has the formulas.
struct Comparison {
  Proportion agreement;         ///< of decisions
  Proportion record_agreement;  ///< of records all of whose decisions (those in the slice) agree
  std::int64_t confident_flips = 0;
  double mean_drift = 0, max_drift = 0;          ///< |q - p| of the option that the reference decides for
  double mean_total_variation = 0, mean_kl = 0;  ///< KL in nats
  double logit_l2_raw = 0, logit_l2_centred = 0;
  std::optional<double> mean_level_difference;                ///< of expected levels; only where there are scores
  std::vector<std::int64_t> drift_counts;                     ///< of drift_edges()
  std::optional<double> hidden_mean, hidden_p95;              ///< relative L2 of what the head reads, per token
  std::int64_t only_reference_right = 0, only_run_right = 0;  ///< of the labelled questions
  std::optional<double> mcnemar;                              ///< of these two; only where there are labels
};

/// Of the drift histogram: 0, then half decades from 1e-6 to 1.
const std::vector<double>& drift_edges();

/// Nothing if no question of the slice has a label.
std::optional<Quality> measure_quality(const Slice& slice, std::span<const LabelledRecord> records,
                                       const RunResult& run);

/// @param cu_tokens  [records + 1] where each record's rows begin in StageDrift::per_token
Comparison compare(const Slice& slice, std::span<const LabelledRecord> records, const RunResult& reference,
                   const RunResult& run, std::span<const std::size_t> cu_tokens);

}  // namespace treble::eval
