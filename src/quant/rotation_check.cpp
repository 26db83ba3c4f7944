#include "quant/rotation_check.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/parallel.h"
#include "quant/rotation.h"

namespace treble {
namespace {

/// Mean over some rows of the excess kurtosis of a row's weights after the rotation is undone. A row's scale does not
/// change it.
double mean_kurtosis(const LinearWeight& linear, std::int64_t group, std::int64_t num_rows) {
  const std::int64_t in_features = linear.in_features();
  std::vector<double> of_row(static_cast<std::size_t>(num_rows));
  parallel_for(num_rows, [&](std::int64_t i) {
    std::vector<float> row(static_cast<std::size_t>(in_features));
    const TensorView codes = linear.weight.rows(i * linear.out_features() / num_rows, linear.out_features());
    std::copy_n(codes.as<std::int8_t>(), in_features, row.begin());
    rotate(row.data(), in_features, group);
    double squares = 0, fourths = 0;
    for (const float x : row) {
      const double square = static_cast<double>(x) * x;
      squares += square;
      fourths += square * square;
    }
    if (squares > 0)
      of_row[static_cast<std::size_t>(i)] = fourths * static_cast<double>(in_features) / (squares * squares) - 3;
  });
  return std::accumulate(of_row.begin(), of_row.end(), 0.0) / static_cast<double>(num_rows);
}

}  // namespace

std::int64_t likely_rotation_group(const LinearWeight& linear) {
  constexpr std::int64_t kMostRows = 32;
  const std::int64_t num_rows = std::min(kMostRows, linear.out_features());
  const std::int64_t claimed = linear.int8.rotation_group;
  // The kurtosis of n Gaussian numbers is off by sqrt(24 / n) or so.
  const double chance = std::sqrt(24.0 / static_cast<double>(num_rows * linear.in_features()));
  std::int64_t best = claimed;
  // What a wrong rotation leaves looks Gaussian, 0. A weight of lighter tails than that was not rotated wrongly: others
  // only bring it nearer to 0.
  double heaviest = std::max(0.0, mean_kurtosis(linear, claimed, num_rows)) + std::max(0.1, 10 * chance);
  for (const std::int64_t group : {1, 64, 256, 1024}) {
    if (group == claimed || (group > 1 && !is_rotation_group(group, linear.in_features()))) continue;
    const double kurtosis = mean_kurtosis(linear, group, num_rows);
    if (kurtosis <= heaviest) continue;
    best = group;
    heaviest = kurtosis;
  }
  return best;
}

}  // namespace treble
