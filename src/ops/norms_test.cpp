#include <doctest/doctest.h>

#include <cmath>

#include "ops/testing/op_test.h"

using namespace treble;
using namespace treble::testing;

namespace {

constexpr float kEps = 1e-6f;

double silu(double x) {
  return x / (1 + std::exp(-x));
}

double inverse_rms(std::span<const double> row) {
  double squares = 0;
  for (const double x : row) squares += x * x;
  return 1 / std::sqrt(squares / static_cast<double>(row.size()) + static_cast<double>(kEps));
}

std::span<const double> row_of(const std::vector<double>& values, std::int64_t row, std::int64_t width) {
  return std::span(values).subspan(static_cast<std::size_t>(row * width), static_cast<std::size_t>(width));
}

/// In fp32 arithmetic from values in `act`, rounded where the reference rounds.
std::vector<double> gated_rms_norm(DType act, const Operand& x, const Operand& gate, const Operand& weight) {
  const std::int64_t width = std::ssize(weight.values);
  std::vector<double> out;
  for (std::int64_t row = 0; row < std::ssize(x.values) / width; ++row) {
    const double normalise = inverse_rms(row_of(x.values, row, width));
    for (std::int64_t i = 0; i < width; ++i) {
      const double normalised = rounded(act, x[row * width + i] * normalise);
      out.push_back(rounded(act, rounded(act, weight[i] * normalised) * silu(gate[row * width + i])));
    }
  }
  return out;
}

}  // namespace

TEST_CASE("rms_norm: each row over its root mean square, times the gain plus one") {
  for (const Backend& backend : backends()) {
    OpTest test("rms_norm", backend, 21);
    for (const auto& [num_rows, width] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {1, 64}, {7, 37}, {65, 1030}}) {
      const Operand x = test.normal(test.act(), {num_rows, width}), weight = test.normal(DType::kBF16, {width}, 0.3);
      const TensorView out = test.output(test.act(), {num_rows, width});
      test.ops().rms_norm({.x = x, .weight = weight, .eps = kEps, .out = out});
      std::vector<double> expected;
      for (std::int64_t row = 0; row < num_rows; ++row) {
        const double normalise = inverse_rms(row_of(x.values, row, width));
        for (std::int64_t i = 0; i < width; ++i) expected.push_back(x[row * width + i] * normalise * (1 + weight[i]));
      }
      test.expect(out, expected, tolerance(test.act(), 1));
      test.expect(x, x.values, {0, 0});
    }
  }
}

TEST_CASE("rms_norm: rows of wider tensors are read and written, and their neighbours left") {
  for (const Backend& backend : backends()) {
    OpTest test("rms_norm", backend, 22);
    constexpr std::int64_t kRows = 9, kWidth = 100;
    const Operand x = test.normal(test.act(), {kRows, 2 * kWidth}), weight = test.normal(DType::kBF16, {kWidth}, 0.3);
    const TensorView wide_out = test.output(test.act(), {kRows, 2 * kWidth});
    const TensorView x_half = x.view.slice(1, kWidth, 2 * kWidth);
    test.ops().rms_norm({.x = x_half, .weight = weight, .eps = kEps, .out = wide_out.slice(1, 0, kWidth)});
    const std::vector<double> read = test.read(x_half);
    std::vector<double> expected;
    for (std::int64_t row = 0; row < kRows; ++row) {
      const double normalise = inverse_rms(row_of(read, row, kWidth));
      for (std::int64_t i = 0; i < kWidth; ++i)
        expected.push_back(read[static_cast<std::size_t>(row * kWidth + i)] * normalise * (1 + weight[i]));
    }
    test.expect(wide_out.slice(1, 0, kWidth), expected, tolerance(test.act(), 1));
    for (const double value : test.read(wide_out.slice(1, kWidth, 2 * kWidth))) CHECK(std::isnan(value));
    test.expect(x, x.values, {0, 0});
  }
}

TEST_CASE("norms: the figures worked out in docs/model.md") {
  for (const Backend& backend : backends()) {
    OpTest test("norms", backend, 0);
    const std::vector<double> values = {0.54, -0.74, 0, 0.74}, gains = {0.5, 1, 1.5, 2},
                              gates = {0.64, -1.92, -0.44, 1.04};
    const Operand x = test.with_values(test.act(), {1, 4}, values);
    const Operand weight = test.with_values(DType::kBF16, {4}, gains),
                  gate = test.with_values(test.act(), {1, 1, 4}, gates);
    const TensorView plain = test.output(test.act(), {1, 4}), gated = test.output(test.act(), {1, 4});
    test.ops().rms_norm({.x = x, .weight = weight, .eps = kEps, .out = plain});
    test.ops().gated_rms_norm(
        {.x = x.view.reshape({1, 1, 4}), .gate = gate, .weight = weight, .eps = kEps, .out = gated});
    // In bf16 the inputs are rounded too; the figures have seven decimals.
    Tolerance close = tolerance(test.act(), 4, 1, 5);
    close.absolute += 1e-7;
    test.expect(plain, std::vector<double>{1.3756485, -2.5135306, 0, 3.7702958}, close);
    test.expect(gated, std::vector<double>{0.1921516, 0.3085286, 0, 1.9314069}, close);
  }
}

TEST_CASE("gated_rms_norm: each head alone, then the gain itself, then silu of the gate") {
  for (const Backend& backend : backends()) {
    OpTest test("gated_rms_norm", backend, 23);
    for (const auto& [num_tokens, num_heads, width] :
         {std::array<std::int64_t, 3>{1, 1, 128}, {3, 2, 37}, {50, 4, 128}}) {
      const Operand x = test.normal(test.act(), {num_tokens, num_heads, width});
      const Operand gate = test.normal(test.act(), {num_tokens, num_heads, width}, 3);
      const Operand weight = test.uniform(DType::kBF16, {width}, 0.5, 1.5);
      const TensorView out = test.output(test.act(), {num_tokens, num_heads * width});
      test.ops().gated_rms_norm({.x = x, .gate = gate, .weight = weight, .eps = kEps, .out = out});
      const std::vector<double> expected = gated_rms_norm(test.act(), x, gate, weight);
      // A rounding that tips over on the way moves the result by a unit in the last place.
      test.expect(out, expected, tolerance(test.act(), 1, 0.1, 3));
      if (test.act() == DType::kBF16 && num_tokens > 1) test.expect_rounded(out, expected);
    }
  }
}

TEST_CASE("gated_rms_norm: the gate may lie between other projections") {
  for (const Backend& backend : backends()) {
    OpTest test("gated_rms_norm", backend, 24);
    constexpr std::int64_t kTokens = 5, kHeads = 3, kWidth = 20;
    const Operand x = test.normal(test.act(), {kTokens, kHeads, kWidth}), weight = test.normal(DType::kBF16, {kWidth});
    const Operand wide = test.normal(test.act(), {kTokens, 2 * kHeads * kWidth});
    const TensorView gate_view =
        wide.view.slice(1, kHeads * kWidth, 2 * kHeads * kWidth).reshape({kTokens, kHeads, kWidth});
    const TensorView out = test.output(test.act(), {kTokens, kHeads * kWidth});
    test.ops().gated_rms_norm({.x = x, .gate = gate_view, .weight = weight, .eps = kEps, .out = out});
    const Operand gate{gate_view, test.read(gate_view)};
    test.expect(out, gated_rms_norm(test.act(), x, gate, weight), tolerance(test.act(), 1, 0.1, 3));
  }
}

TEST_CASE("layer_norm: centred, over the root of the biased variance, in any mix of dtypes and in place") {
  for (const Backend& backend : backends()) {
    OpTest test("layer_norm", backend, 25);
    constexpr float kLayerEps = 1e-5f;
    for (const DType in : {test.act(), DType::kF32}) {
      for (const DType out_dtype : {test.act(), DType::kF32}) {
        for (const auto& [num_rows, width] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {3, 37}, {70, 1024}}) {
          // Far from zero: the variance must not come from a difference of large moments.
          const Operand x = test.uniform(in, {num_rows, width}, 30, 34);
          const Operand weight = test.normal(DType::kBF16, {width}), bias = test.normal(DType::kBF16, {width});
          const bool in_place = in == out_dtype && num_rows == 3;
          const TensorView out = in_place ? x.view : test.output(out_dtype, {num_rows, width});
          test.ops().layer_norm({.x = x, .weight = weight, .bias = bias, .eps = kLayerEps, .out = out});
          std::vector<double> expected;
          for (std::int64_t row = 0; row < num_rows; ++row) {
            double mean = 0, variance = 0;
            for (const double value : row_of(x.values, row, width)) mean += value / static_cast<double>(width);
            for (const double value : row_of(x.values, row, width))
              variance += (value - mean) * (value - mean) / static_cast<double>(width);
            for (std::int64_t i = 0; i < width; ++i) {
              const double normalised =
                  (x[row * width + i] - mean) / std::sqrt(variance + static_cast<double>(kLayerEps));
              expected.push_back(normalised * weight[i] + bias[i]);
            }
          }
          // The mean is off by some units of 34 itself, seen through the division by about 1.2.
          test.expect(out, expected, tolerance(out_dtype, 1, 34));
        }
      }
    }
  }
}

TEST_CASE("layer_norm: delta is added to the residual stream, rounded once, before the norm") {
  for (const Backend& backend : backends()) {
    OpTest test("layer_norm", backend, 26);
    constexpr std::int64_t kRows = 40, kWidth = 100;
    const Operand x = test.normal(test.act(), {kRows, kWidth}), delta = test.normal(test.act(), {kRows, kWidth});
    const Operand weight = test.normal(DType::kBF16, {kWidth}), bias = test.normal(DType::kBF16, {kWidth});
    const TensorView out = test.output(test.act(), {kRows, kWidth});
    test.ops().layer_norm({.x = x, .delta = delta, .weight = weight, .bias = bias, .eps = kEps, .out = out});
    std::vector<double> sums, expected;
    for (std::int64_t i = 0; i < kRows * kWidth; ++i) sums.push_back(rounded(test.act(), x[i] + delta[i]));
    for (std::int64_t row = 0; row < kRows; ++row) {
      double mean = 0, variance = 0;
      for (const double value : row_of(sums, row, kWidth)) mean += value / kWidth;
      for (const double value : row_of(sums, row, kWidth)) variance += (value - mean) * (value - mean) / kWidth;
      for (std::int64_t i = 0; i < kWidth; ++i) {
        const double centred = sums[static_cast<std::size_t>(row * kWidth + i)] - mean;
        expected.push_back(centred / std::sqrt(variance + static_cast<double>(kEps)) * weight[i] + bias[i]);
      }
    }
    test.expect(x, sums, tolerance(test.act(), 1));
    if (test.act() == DType::kBF16) test.expect_rounded(x, sums);
    // The bf16 sum may differ by a unit in the last place from the one here.
    test.expect(out, expected, tolerance(test.act(), kWidth, 4, 2));
  }
}
