#include "engine/agreement.h"

#include <treble/error.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace treble {
namespace {

std::vector<double> softmax(const std::vector<float>& logits) {
  std::vector<double> p(logits.begin(), logits.end());
  const double largest = *std::ranges::max_element(p);
  double sum = 0;
  for (double& x : p) sum += x = std::exp(x - largest);
  for (double& x : p) x /= sum;
  return p;
}

}  // namespace

void add_record(Agreement& agreement, std::span<const std::vector<float>> a, std::span<const std::vector<float>> b) {
  if (a.size() != b.size()) throw Error(ErrorCode::kInternal, "agreement: two runs answer different questions");
  for (std::size_t q = 0; q < a.size(); ++q) {
    if (a[q].size() != b[q].size() || a[q].empty())
      throw Error(ErrorCode::kInternal, "agreement: two runs answer different options");
    const std::vector<double> in_a = softmax(a[q]), in_b = softmax(b[q]);
    for (std::size_t o = 0; o < in_a.size(); ++o) {
      const double difference = std::abs(in_a[o] - in_b[o]);
      // Not-a-number must not pass for agreement.
      if (!(difference <= agreement.max_difference)) agreement.max_difference = difference;
    }
    ++agreement.decisions;
    if (std::ranges::max_element(a[q]) - a[q].begin() != std::ranges::max_element(b[q]) - b[q].begin())
      ++agreement.differing;
  }
}

}  // namespace treble
