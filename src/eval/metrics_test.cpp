#include "eval/metrics.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

namespace treble::eval {
namespace {

using doctest::Approx;
using Values = std::vector<double>;

TEST_CASE("metrics: softmax of logits ln 1, ln 3 and of logits that overflow exp") {
  const Values p = softmax(Values{std::log(1.0), std::log(3.0)});
  CHECK(p[0] == Approx(0.25));
  CHECK(p[1] == Approx(0.75));
  const Values far = softmax(Values{2000, 0});
  CHECK(far[0] == 1);
  CHECK(far[1] == 0);
  CHECK(log_softmax(Values{2000, 0})[1] == -2000);
}

TEST_CASE("metrics: of equal values the first is the decision") {
  CHECK(argmax(Values{0.2, 0.4, 0.4}) == 1);
  CHECK(argmax(Values{1}) == 0);
}

TEST_CASE("metrics: total variation is half the absolute difference") {
  CHECK(total_variation(Values{0.5, 0.3, 0.2}, Values{0.2, 0.3, 0.5}) == Approx(0.3));
  CHECK(total_variation(Values{1, 0}, Values{0, 1}) == 1);
}

TEST_CASE("metrics: KL is 0 of equal distributions, ln 2 of certain against even, and finite where p rounds to 0") {
  CHECK(kl_divergence(Values{1, 2, 3}, Values{11, 12, 13}) == Approx(0));
  CHECK(kl_divergence(Values{2000, 0}, Values{0, 0}) == Approx(std::log(2.0)));
  // p = (1/4, 3/4), q = (1/2, 1/2): 1/4 ln(1/2) + 3/4 ln(3/2)
  CHECK(kl_divergence(Values{0, std::log(3.0)}, Values{5, 5}) == Approx(0.1308120411));
  CHECK(kl_divergence(Values{0, 0}, Values{2000, 0}) == Approx(1000 - std::log(2.0)));
}

TEST_CASE("metrics: expected level and Brier score of (0.2, 0.3, 0.5)") {
  CHECK(expected_level(Values{0.2, 0.3, 0.5}) == Approx(1.3));
  CHECK(brier(Values{0.2, 0.3, 0.5}, 2) == Approx(0.04 + 0.09 + 0.25));
  CHECK(brier(Values{0.9, 0.1}, 1) == Approx(2 * 0.81));
}

TEST_CASE("metrics: relative L2 raw and centred") {
  // (3, 4) against (3, 5): sqrt(1 / 25). Centred (-0.5, 0.5) against (-1, 1): sqrt(0.5 / 0.5).
  CHECK(squared_error(Values{3, 4}, Values{3, 5}).relative_l2() == Approx(0.2));
  CHECK(centred_squared_error(Values{3, 4}, Values{3, 5}).relative_l2() == Approx(1));
  // A shift is no drift of the probabilities.
  CHECK(squared_error(Values{3, 4}, Values{6, 7}).relative_l2() == Approx(std::sqrt(18.0 / 25)));
  CHECK(centred_squared_error(Values{3, 4}, Values{6, 7}).relative_l2() == 0);
  CHECK(squared_error(std::vector<float>{3, 4}, std::vector<float>{3, 5}).relative_l2() == Approx(0.2));
}

TEST_CASE("metrics: relative L2 is of the sums, and infinite only where a reference of zeros is missed") {
  SquaredError sums = squared_error(Values{3}, Values{4});
  sums += squared_error(Values{4}, Values{4});
  CHECK(sums.relative_l2() == Approx(0.2));
  CHECK(SquaredError{}.relative_l2() == 0);
  CHECK(std::isinf(squared_error(Values{0}, Values{1}).relative_l2()));
}

TEST_CASE("metrics: Wilson intervals of 8 of 10, 0 of 10, 10 of 10 and 0 of 0") {
  const Proportion most = proportion(8, 10);
  CHECK(most.share == Approx(0.8));
  CHECK(most.low == Approx(0.4901625).epsilon(1e-6));
  CHECK(most.high == Approx(0.9433178).epsilon(1e-6));
  CHECK(proportion(0, 10).low == 0);
  CHECK(proportion(0, 10).high == Approx(0.2775328).epsilon(1e-6));
  CHECK(proportion(10, 10).low == Approx(1 - 0.2775328).epsilon(1e-6));
  CHECK(proportion(10, 10).high == 1);
  CHECK(proportion(0, 0).share == 0);
}

TEST_CASE("metrics: quantiles lie between the ranks; mean and largest") {
  CHECK(quantile({4, 1, 3, 2}, 0.5) == Approx(2.5));
  CHECK(quantile({1, 2, 3, 4, 5}, 0.95) == Approx(4.8));
  CHECK(quantile({7}, 0.95) == 7);
  CHECK(quantile({}, 0.95) == 0);
  CHECK(mean(Values{1, 2, 6}) == 3);
  CHECK(largest(Values{1, 6, 2}) == 6);
  CHECK(mean({}) == 0);
  CHECK(largest({}) == 0);
}

TEST_CASE("metrics: ECE in two bins of equal width") {
  // (0, 0.5]: 0.4 wrong, 0.5 right: accuracy 0.5, confidence 0.45. (0.5, 1]: 0.8 right, 1.0 right: 1 and 0.9.
  const std::vector<ReliabilityBin> bins = reliability_bins(Values{0.4, 0.5, 0.8, 1.0}, {false, true, true, true}, 2);
  REQUIRE(bins.size() == 2);
  CHECK(bins[0].count == 2);
  CHECK(bins[0].accuracy == Approx(0.5));
  CHECK(bins[0].mean_confidence == Approx(0.45));
  CHECK(bins[1].low == 0.5);
  CHECK(bins[1].high == 1);
  CHECK(calibration_error(bins) == Approx(0.5 * 0.05 + 0.5 * 0.1));
  CHECK(calibration_error(reliability_bins({}, {})) == 0);
  CHECK(reliability_bins({}, {}).size() == 15);
}

TEST_CASE("metrics: bins of equal mass hold as many decisions each, in order of confidence") {
  const std::vector<ReliabilityBin> bins = equal_mass_bins(Values{0.9, 0.6, 0.8, 0.7}, {true, false, true, true}, 2);
  REQUIRE(bins.size() == 2);
  CHECK(bins[0].count == 2);
  CHECK(bins[0].mean_confidence == Approx(0.65));
  CHECK(bins[0].accuracy == Approx(0.5));
  CHECK(bins[1].mean_confidence == Approx(0.85));
  CHECK(bins[1].low == 0.7);
  CHECK(calibration_error(bins) == Approx(0.15));
  CHECK(equal_mass_bins(Values{0.9}, {true}).size() == 1);
}

TEST_CASE("metrics: McNemar's exact test") {
  CHECK(mcnemar_p(0, 0) == 1);
  CHECK(mcnemar_p(3, 3) == 1);
  CHECK(mcnemar_p(0, 5) == Approx(2.0 / 32));
  CHECK(mcnemar_p(1, 5) == Approx(2 * 7.0 / 64));
  CHECK(mcnemar_p(5, 1) == mcnemar_p(1, 5));
  CHECK(mcnemar_p(0, 4000) >= 0);
}

TEST_CASE("metrics: a histogram counts values at an edge above it and values beyond the ends in the end bins") {
  CHECK(histogram(Values{-1, 0, 0.5, 1, 1.5, 2, 9}, Values{0, 1, 2}) == std::vector<std::int64_t>{3, 4});
}

}  // namespace
}  // namespace treble::eval
