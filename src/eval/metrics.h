#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

// The figures of `treble eval` as pure functions; docs/quality.md says what each is for. z are logits, p probabilities,
// of one question, in one order of its options. Everything is double.

namespace treble::eval {

// ---- one question ---------------------------------------------------------------------------------------------------

/// p_k = exp(z_k) / sum(exp(z)). @param logits  at least one, finite
std::vector<double> softmax(std::span<const double> logits);

/// ln p_k, which stays finite where p_k is rounded to 0.
std::vector<double> log_softmax(std::span<const double> logits);

/// Index of the largest value, the lowest of equals.
std::size_t argmax(std::span<const double> values);

/// sum_k |q_k - p_k| / 2, in [0, 1].
double total_variation(std::span<const double> p, std::span<const double> q);

/// KL(p || q) = sum_k p_k (ln p_k - ln q_k) in nats, of the distributions of two lists of logits; never below 0.
double kl_divergence(std::span<const double> p_logits, std::span<const double> q_logits);

/// sum_k k p_k: the expected level of a score.
double expected_level(std::span<const double> p);

/// sum_k (p_k - [k = label])^2, in [0, 2]; for two options twice the binary form.
double brier(std::span<const double> p, std::size_t label);

// ---- relative L2 ----------------------------------------------------------------------------------------------------

/// Sums from which sqrt(sum (b - a)^2 / sum a^2) is made, a being the reference.
struct SquaredError {
  double error = 0;  ///< sum (b - a)^2
  double norm = 0;   ///< sum a^2

  SquaredError& operator+=(const SquaredError& other);
  /// 0 where there is no error, infinity where only the norm is 0.
  double relative_l2() const;
};

SquaredError squared_error(std::span<const double> a, std::span<const double> b);
SquaredError squared_error(std::span<const float> a, std::span<const float> b);

/// The same after each list's mean is taken from it: what softmax sees.
SquaredError centred_squared_error(std::span<const double> a, std::span<const double> b);

// ---- many questions -------------------------------------------------------------------------------------------------

/// A share with its 95 % Wilson score interval; all 0 for a total of 0.
struct Proportion {
  std::int64_t count = 0, total = 0;
  double share = 0, low = 0, high = 0;
};

Proportion proportion(std::int64_t count, std::int64_t total);

/// The value below which the share q of the values lies: linear between the two nearest ranks; 0 of no values.
double quantile(std::vector<double> values, double q);

double mean(std::span<const double> values);     ///< 0 of no values
double largest(std::span<const double> values);  ///< 0 of no values

/// Decisions of similar confidence.
struct ReliabilityBin {
  double low = 0, high = 0;    ///< the bin holds confidences in (low, high]
  std::int64_t count = 0;      ///< decisions
  double mean_confidence = 0;  ///< 0 of an empty bin
  double accuracy = 0;         ///< 0 of an empty bin
};

/// Bins of equal width over (0, 1].
/// @param confidences  largest probability of each decision  @param is_right  whether it equals the label
std::vector<ReliabilityBin> reliability_bins(std::span<const double> confidences, const std::vector<bool>& is_right,
                                             std::size_t num_bins = 15);

/// Bins of equal numbers of decisions (they differ by at most one), in order of confidence; fewer bins where there are
/// fewer decisions.
std::vector<ReliabilityBin> equal_mass_bins(std::span<const double> confidences, const std::vector<bool>& is_right,
                                            std::size_t num_bins = 15);

/// Expected calibration error: sum_b n_b / n |accuracy_b - confidence_b|; 0 of no decisions.
double calibration_error(const std::vector<ReliabilityBin>& bins);

/// McNemar's exact two-sided test of two models on the same labels: how probable a split at least as uneven is if both
/// are equally often right alone.
/// @param only_first, only_second  decisions that one of them alone has right
double mcnemar_p(std::int64_t only_first, std::int64_t only_second);

/// Counts of the values in [edge_i, edge_i+1); values beyond the ends count in the first and the last bin.
/// @param edges  ascending, at least two
std::vector<std::int64_t> histogram(std::span<const double> values, std::span<const double> edges);

}  // namespace treble::eval
