#include "eval/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace treble::eval {
namespace {

template <typename Value>
SquaredError sum_squares(std::span<const Value> a, std::span<const Value> b, double a_mean, double b_mean) {
  SquaredError sums;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a[i]) - a_mean, y = static_cast<double>(b[i]) - b_mean;
    sums.error += (y - x) * (y - x);
    sums.norm += x * x;
  }
  return sums;
}

void add_decision(ReliabilityBin& bin, double confidence, bool is_right) {
  ++bin.count;
  bin.mean_confidence += confidence;
  bin.accuracy += is_right ? 1 : 0;
}

void divide_by_counts(std::vector<ReliabilityBin>& bins) {
  for (ReliabilityBin& bin : bins) {
    if (bin.count == 0) continue;
    bin.mean_confidence /= static_cast<double>(bin.count);
    bin.accuracy /= static_cast<double>(bin.count);
  }
}

}  // namespace

std::vector<double> log_softmax(std::span<const double> logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double z : logits) sum += std::exp(z - top);
  std::vector<double> logs;
  for (const double z : logits) logs.push_back(z - top - std::log(sum));
  return logs;
}

std::vector<double> softmax(std::span<const double> logits) {
  std::vector<double> p = log_softmax(logits);
  for (double& value : p) value = std::exp(value);
  return p;
}

std::size_t argmax(std::span<const double> values) {
  return static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

double total_variation(std::span<const double> p, std::span<const double> q) {
  double sum = 0;
  for (std::size_t k = 0; k < p.size(); ++k) sum += std::abs(q[k] - p[k]);
  return sum / 2;
}

double kl_divergence(std::span<const double> p_logits, std::span<const double> q_logits) {
  const std::vector<double> p = log_softmax(p_logits), q = log_softmax(q_logits);
  double sum = 0;
  for (std::size_t k = 0; k < p.size(); ++k) sum += std::exp(p[k]) * (p[k] - q[k]);
  return std::max(0.0, sum);  // rounding may leave a little less than nothing
}

double expected_level(std::span<const double> p) {
  double sum = 0;
  for (std::size_t k = 0; k < p.size(); ++k) sum += static_cast<double>(k) * p[k];
  return sum;
}

double brier(std::span<const double> p, std::size_t label) {
  double sum = 0;
  for (std::size_t k = 0; k < p.size(); ++k) {
    const double difference = p[k] - (k == label ? 1 : 0);
    sum += difference * difference;
  }
  return sum;
}

SquaredError& SquaredError::operator+=(const SquaredError& other) {
  error += other.error;
  norm += other.norm;
  return *this;
}

double SquaredError::relative_l2() const {
  if (error == 0) return 0;
  return norm == 0 ? std::numeric_limits<double>::infinity() : std::sqrt(error / norm);
}

SquaredError squared_error(std::span<const double> a, std::span<const double> b) {
  return sum_squares(a, b, 0, 0);
}

SquaredError squared_error(std::span<const float> a, std::span<const float> b) {
  return sum_squares(a, b, 0, 0);
}

SquaredError centred_squared_error(std::span<const double> a, std::span<const double> b) {
  return sum_squares(a, b, mean(a), mean(b));
}

Proportion proportion(std::int64_t count, std::int64_t total) {
  if (total == 0) return {};
  constexpr double kZ = 1.959963984540054;  // 97.5 % quantile of the normal distribution
  const auto n = static_cast<double>(total);
  const double share = static_cast<double>(count) / n;
  const double scale = 1 + kZ * kZ / n;
  const double centre = (share + kZ * kZ / (2 * n)) / scale;
  const double half = kZ * std::sqrt(share * (1 - share) / n + kZ * kZ / (4 * n * n)) / scale;
  return {.count = count,
          .total = total,
          .share = share,
          .low = count == 0 ? 0 : centre - half,
          .high = count == total ? 1 : centre + half};
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double rank = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(rank);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], rank - static_cast<double>(below));
}

double mean(std::span<const double> values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double largest(std::span<const double> values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

std::vector<ReliabilityBin> reliability_bins(std::span<const double> confidences, const std::vector<bool>& is_right,
                                             std::size_t num_bins) {
  const auto count = static_cast<double>(num_bins);
  std::vector<ReliabilityBin> bins(num_bins);
  for (std::size_t b = 0; b < num_bins; ++b) {
    bins[b].low = static_cast<double>(b) / count;
    bins[b].high = static_cast<double>(b + 1) / count;
  }
  for (std::size_t i = 0; i < confidences.size(); ++i) {
    const double place = std::clamp(std::ceil(confidences[i] * count), 1.0, count);
    add_decision(bins[static_cast<std::size_t>(place) - 1], confidences[i], is_right[i]);
  }
  divide_by_counts(bins);
  return bins;
}

std::vector<ReliabilityBin> equal_mass_bins(std::span<const double> confidences, const std::vector<bool>& is_right,
                                            std::size_t num_bins) {
  std::vector<std::size_t> order(confidences.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return confidences[a] < confidences[b]; });

  std::vector<ReliabilityBin> bins(std::min(num_bins, order.size()));
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    ReliabilityBin& bin = bins[rank * bins.size() / order.size()];
    add_decision(bin, confidences[order[rank]], is_right[order[rank]]);
    bin.high = confidences[order[rank]];
  }
  for (std::size_t b = 1; b < bins.size(); ++b) bins[b].low = bins[b - 1].high;
  divide_by_counts(bins);
  return bins;
}

double calibration_error(const std::vector<ReliabilityBin>& bins) {
  std::int64_t total = 0;
  double sum = 0;
  for (const ReliabilityBin& bin : bins) {
    total += bin.count;
    sum += static_cast<double>(bin.count) * std::abs(bin.accuracy - bin.mean_confidence);
  }
  return total == 0 ? 0 : sum / static_cast<double>(total);
}

double mcnemar_p(std::int64_t only_first, std::int64_t only_second) {
  const auto n = static_cast<double>(only_first + only_second);
  const std::int64_t fewer = std::min(only_first, only_second);
  double tail = 0;  // P(X <= fewer), X of n throws of a fair coin
  for (std::int64_t k = 0; k <= fewer; ++k) {
    const auto successes = static_cast<double>(k);
    tail +=
        std::exp(std::lgamma(n + 1) - std::lgamma(successes + 1) - std::lgamma(n - successes + 1) - n * std::log(2.0));
  }
  return std::min(1.0, 2 * tail);
}

std::vector<std::int64_t> histogram(std::span<const double> values, std::span<const double> edges) {
  std::vector<std::int64_t> counts(edges.size() - 1);
  for (const double value : values) {
    const auto above = std::upper_bound(edges.begin() + 1, edges.end() - 1, value);
    ++counts[static_cast<std::size_t>(above - edges.begin()) - 1];
  }
  return counts;
}

}  // namespace treble::eval
