#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "ops/testing/op_test.h"

using namespace treble;
using namespace treble::testing;

namespace {

constexpr float kTheta = 1e7f;

/// theta^(-i / 32), each step in fp32.
float frequency(int i) {
  const double power = std::pow(static_cast<double>(kTheta), i / 32.0);
  return 1.0f / static_cast<float>(power);
}

}  // namespace

TEST_CASE("rotary_tables: cosine and sine of the fp32 angle, accurate up to the longest records") {
  for (const Backend& backend : backends()) {
    OpTest test("rotary_tables", backend, 0);
    const std::vector<std::int32_t> tokens = {0, 1, 2, 63, 64, 1000, 16383, 65535, 262143};
    const std::int64_t total_tokens = std::ssize(tokens);
    std::vector<std::int32_t> positions;
    for (int axis = 0; axis < 3; ++axis) positions.insert(positions.end(), tokens.begin(), tokens.end());
    const TensorView cos = test.output(test.act(), {total_tokens, 32}),
                     sin = test.output(test.act(), {total_tokens, 32});
    test.ops().rotary_tables({.positions = test.integers({3, total_tokens}, positions),
                              .theta = kTheta,
                              .section = {11, 11, 10},
                              .cos = cos,
                              .sin = sin});
    std::vector<double> expected_cos, expected_sin;
    for (const std::int32_t position : tokens) {
      for (int i = 0; i < 32; ++i) {
        const double angle = static_cast<double>(static_cast<float>(position) * frequency(i));
        expected_cos.push_back(std::cos(angle));
        expected_sin.push_back(std::sin(angle));
      }
    }
    test.expect(cos, expected_cos, tolerance(test.act(), 1));
    test.expect(sin, expected_sin, tolerance(test.act(), 1));
  }
}

TEST_CASE("rotary_tables: each frequency follows its axis") {
  for (const Backend& backend : backends()) {
    OpTest test("rotary_tables", backend, 0);
    // Token t has position 1 on axis t and 0 on the others, so its sine is not zero where that axis drives.
    const std::vector<std::int32_t> positions = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    const auto axes = [&](std::int64_t num_frequencies, std::array<std::int32_t, 3> section) {
      const TensorView cos = test.output(test.act(), {3, num_frequencies}),
                       sin = test.output(test.act(), {3, num_frequencies});
      test.ops().rotary_tables(
          {.positions = test.integers({3, 3}, positions), .theta = kTheta, .section = section, .cos = cos, .sin = sin});
      const std::vector<double> values = test.read(sin);
      std::string letters(static_cast<std::size_t>(num_frequencies), '?');
      for (std::size_t i = 0; i < letters.size(); ++i) {
        for (std::size_t t = 0; t < 3; ++t) {
          if (values[t * letters.size() + i] != 0) letters[i] = letters[i] == '?' ? "THW"[t] : '!';
        }
      }
      return letters;
    };
    CHECK(axes(32, {11, 11, 10}) == "THWTHWTHWTHWTHWTHWTHWTHWTHWTHWTH");
    CHECK(axes(8, {5, 2, 1}) == "THWTHTTT");
  }
}
