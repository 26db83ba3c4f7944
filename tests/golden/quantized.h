#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "compare.h"

/// Quantised fixtures: opening them, and how near their answers have to be.
namespace treble::testing {

// A changed order of sums flips a few codes, and a flip spreads: two correct implementations differ by as much as
// 1.5e-2 in hidden states and 0.05 in a logit (tests/data/README.md).
inline constexpr double kInt8LogitTolerance = 0.1;
// With bf16 activations also as far as two bf16 runs are apart: twice 0.036 (golden_test.cpp).
inline constexpr double kInt8Bf16LogitTolerance = kInt8LogitTolerance + 0.07;

/// Whether the decision is the expected one; a margin under 0.02 between the best two is too small to ask.
inline bool is_same_decision(const std::vector<float>& got, const std::vector<double>& expected) {
  const std::vector<double> p = softmax(expected);
  const auto best = std::max_element(p.begin(), p.end()) - p.begin();
  std::vector<double> sorted = p;
  std::sort(sorted.rbegin(), sorted.rend());
  if (sorted.size() < 2 || sorted[0] - sorted[1] < 0.02) return true;
  return std::max_element(got.begin(), got.end()) - got.begin() == best;
}

/// A quantised fixture's model. Its files hold the text model alone; the vision tower comes from the bf16 release,
/// whose weights it was made from, converted in the same way.
inline Model load_quantized(const Fixture& fixture, Ops& ops, WeightConversion tower) {
  Model model = load_model(fixture.release(), ops);
  Model plain = load_model(Fixture().release(), ops, tower);
  model.vision = plain.vision;
  std::ranges::move(plain.storage, std::back_inserter(model.storage));
  return model;
}

}  // namespace treble::testing
