#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

#include "ops/testing/op_test.h"

using namespace treble;
using namespace treble::testing;

namespace {

double norm(std::span<const double> x) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  return std::sqrt(squares);
}

double cosine(std::span<const double> a, std::span<const double> b, double floor) {
  double dot = 0;
  for (std::size_t i = 0; i < a.size(); ++i) dot += a[i] * b[i];
  return dot / (std::max(norm(a), floor) * std::max(norm(b), floor));
}

std::span<const double> row_of(const Operand& operand, std::int64_t row) {
  const std::int64_t width = operand.view.size(1);
  return std::span(operand.values).subspan(static_cast<std::size_t>(row * width), static_cast<std::size_t>(width));
}

}  // namespace

TEST_CASE("span_mean: the mean of each range of rows, named directly or through an index") {
  for (const Backend& backend : backends()) {
    OpTest test("span_mean", backend, 51);
    constexpr std::int64_t kWidth = 301;
    const std::vector<std::int32_t> spans = {0, 1, 3, 7, 11, 12, 0, 12}, index = {4, 4, 0, 11, 10, 9, 1, 2, 3, 8, 7, 5};
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      const Operand rows = test.normal(dtype, {12, kWidth});
      for (const bool indexed : {false, true}) {
        const TensorView out = test.output(DType::kF32, {4, kWidth});
        test.ops().span_mean({.rows = rows,
                              .index = indexed ? test.host_integers({12}, index) : TensorView(),
                              .spans = test.host_integers({4, 2}, spans),
                              .out = out});
        std::vector<double> expected(4 * kWidth);
        for (std::size_t s = 0; s < 4; ++s) {
          const std::int32_t begin = spans[2 * s], end = spans[2 * s + 1];
          for (std::int32_t t = begin; t < end; ++t) {
            const std::int64_t row = indexed ? index[static_cast<std::size_t>(t)] : t;
            for (std::size_t i = 0; i < kWidth; ++i) expected[s * kWidth + i] += row_of(rows, row)[i] / (end - begin);
          }
        }
        test.expect(out, expected, tolerance(DType::kF32, 12));
      }
    }
  }
}

TEST_CASE("gelu: both forms in place, from deep in the tail to far above") {
  for (const Backend& backend : backends()) {
    OpTest test("gelu", backend, 52);
    for (const DType dtype : {test.act(), DType::kF32}) {
      for (const GeluForm form : {GeluForm::kErf, GeluForm::kTanh}) {
        const Operand wide = test.uniform(dtype, {19, 70}, -12, 12);
        const TensorView x = wide.view.slice(1, 1, 66);
        const std::vector<double> before = test.read(x);
        test.ops().gelu({.x = x, .form = form});
        std::vector<double> expected;
        for (const double v : before) {
          const double u = std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v);
          expected.push_back(form == GeluForm::kErf ? 0.5 * v * std::erfc(-v / std::numbers::sqrt2)
                                                    : v / (1 + std::exp(-2 * u)));
        }
        test.expect(x, expected, tolerance(dtype, 1));
      }
    }
  }
}

TEST_CASE("add_rows: rows are added in order, or as the index names them, some more than once") {
  for (const Backend& backend : backends()) {
    OpTest test("add_rows", backend, 53);
    const std::vector<std::int32_t> index = {2, 0, 2, 2, 1};
    for (const auto& [dtype, to] : {std::pair(DType::kF32, DType::kF32),
                                    {DType::kBF16, DType::kF32},
                                    {DType::kF32, test.act()},
                                    {DType::kBF16, test.act()}}) {
      const Operand rows = test.normal(dtype, {5, 21});
      for (const bool indexed : {false, true}) {
        const Operand x = test.normal(to, {5, 21});
        test.ops().add_rows({.x = x, .rows = rows, .index = indexed ? test.host_integers({5}, index) : TensorView()});
        std::vector<double> expected;
        for (std::int64_t row = 0; row < 5; ++row) {
          for (std::int64_t i = 0; i < 21; ++i)
            expected.push_back(x[row * 21 + i] + rows[(indexed ? index[static_cast<std::size_t>(row)] : row) * 21 + i]);
        }
        test.expect(x, expected, tolerance(to, 1));
      }
    }
  }
}

TEST_CASE("option_features: the field, the option, their product and their distance") {
  for (const Backend& backend : backends()) {
    OpTest test("option_features", backend, 54);
    const std::vector<std::int32_t> owner = {0, 0, 1};
    const Operand fields = test.normal(DType::kF32, {2, 19}), options = test.normal(DType::kF32, {3, 19});
    const TensorView out = test.output(DType::kF32, {3, 76});
    test.ops().option_features(
        {.fields = fields, .options = options, .owner = test.host_integers({3}, owner), .out = out});
    std::vector<double> expected;
    for (std::int64_t o = 0; o < 3; ++o) {
      const auto field = row_of(fields, owner[static_cast<std::size_t>(o)]), option = row_of(options, o);
      expected.insert(expected.end(), field.begin(), field.end());
      expected.insert(expected.end(), option.begin(), option.end());
      for (std::size_t i = 0; i < 19; ++i) expected.push_back(field[i] * option[i]);
      for (std::size_t i = 0; i < 19; ++i) expected.push_back(std::abs(field[i] - option[i]));
    }
    test.expect(out, expected, tolerance(DType::kF32, 1));
  }
}

TEST_CASE("option_logits: prior plus gated joint score; a zero vector scores 0, not NaN") {
  for (const Backend& backend : backends()) {
    OpTest test("option_logits", backend, 55);
    const std::vector<std::int32_t> owner = {0, 1, 1, 1};
    const Operand fields = test.normal(DType::kF32, {2, 37}), anchor = test.normal(DType::kF32, {2, 130});
    std::vector<double> option_values = test.normal(DType::kF32, {4, 37}).values;
    std::vector<double> lexical_values = test.normal(DType::kF32, {4, 130}).values;
    std::fill_n(option_values.begin() + 2 * 37, 37, 0.0);
    std::fill_n(lexical_values.begin() + 2 * 130, 130, 0.0);
    const Operand options = test.with_values(DType::kF32, {4, 37}, option_values);
    const Operand lexical = test.with_values(DType::kF32, {4, 130}, lexical_values);
    const Operand residual = test.normal(DType::kF32, {4, 1});
    const TensorView out = test.output(DType::kF32, {4});
    test.ops().option_logits({.fields = fields,
                              .options = options,
                              .anchor = anchor,
                              .lexical = lexical,
                              .residual = residual,
                              .owner = test.host_integers({4}, owner),
                              .prior_scale = 20,
                              .joint_scale = 10,
                              .residual_gate = 0.25f,
                              .out = out});
    std::vector<double> expected;
    for (std::int64_t o = 0; o < 4; ++o) {
      const std::int64_t question = owner[static_cast<std::size_t>(o)];
      const double prior = cosine(row_of(lexical, o), row_of(anchor, question), 1e-12);
      const double joint = cosine(row_of(fields, question), row_of(options, o), 1e-8);
      expected.push_back(20 * prior + 0.25 * (10 * joint + residual[o]));
    }
    // A cosine of n terms of about 1/n each, times 20.
    test.expect(out, expected, tolerance(DType::kF32, 130, 20.0 / 130));
  }
}
