#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <numbers>
#include <tuple>
#include <utility>
#include <vector>

#include "ops/testing/op_test.h"

using namespace treble;
using namespace treble::testing;

namespace {

struct Weight {
  Operand weight, bias;
  LinearWeight linear;
};

/// Entries such that an output over inputs of unit variance has unit variance.
Weight random_weight(OpTest& test, std::int64_t out_features, std::int64_t in_features, bool has_bias) {
  Weight out;
  out.weight = test.normal(DType::kBF16, {out_features, in_features}, 1 / std::sqrt(static_cast<double>(in_features)));
  if (has_bias) out.bias = test.normal(DType::kBF16, {out_features});
  out.linear = {.weight = out.weight, .bias = out.bias};
  return out;
}

std::vector<double> product(const std::vector<double>& input, const Weight& weight) {
  const std::int64_t out_features = weight.linear.out_features(), in_features = weight.linear.in_features();
  std::vector<double> out;
  for (std::int64_t t = 0; t < std::ssize(input) / in_features; ++t) {
    for (std::int64_t o = 0; o < out_features; ++o) {
      double sum = weight.bias.view ? weight.bias[o] : 0;
      for (std::int64_t i = 0; i < in_features; ++i)
        sum += input[static_cast<std::size_t>(t * in_features + i)] * weight.weight[o * in_features + i];
      out.push_back(sum);
    }
  }
  return out;
}

/// Of a product with a random_weight().
Tolerance product_tolerance(DType dtype, std::int64_t in_features) {
  return tolerance(dtype, in_features, 1 / std::sqrt(static_cast<double>(in_features)));
}

/// Of such a product that was added to something and may have been rounded before.
Tolerance added_tolerance(DType dtype, std::int64_t in_features) {
  Tolerance result = product_tolerance(dtype, in_features);
  // Products have unit variance: half a unit in the last place at five times the spread.
  result.absolute += 5 * std::ldexp(1.0, dtype == DType::kBF16 ? -8 : -24);
  return result;
}

double silu(double x) {
  return x / (1 + std::exp(-x));
}

}  // namespace

TEST_CASE("linear: the product of every token with every weight row, for all sizes of tile and tail") {
  struct Case {
    std::int64_t total_tokens, in_features, out_features;
  };
  for (const Backend& backend : backends()) {
    OpTest test("linear", backend, 41);
    for (const auto& [total_tokens, in_features, out_features] :
         {Case{1, 1, 1}, Case{1, 1024, 4}, Case{2, 64, 3}, Case{3, 20, 7}, Case{5, 33, 1}, Case{17, 96, 96},
          Case{97, 130, 49}, Case{200, 1100, 50}, Case{30, 2500, 10}, Case{65, 1152, 200}, Case{12, 544, 16},
          Case{33, 1056, 24}, Case{300, 64, 48}}) {
      CAPTURE(total_tokens);
      CAPTURE(in_features);
      const Operand input = test.normal(test.act(), {total_tokens, in_features});
      const Weight weight = random_weight(test, out_features, in_features, false);
      const TensorView out = test.output(test.act(), {total_tokens, out_features});
      const Linear::Output output{&weight.linear, out};
      test.ops().linear({.input = input.view, .outputs = {&output, 1}});
      test.expect(out, product(input.values, weight), product_tolerance(test.act(), in_features));
    }
  }
}

TEST_CASE("linear: a batch longer than one block of packed tokens") {
  for (const Backend& backend : backends()) {
    OpTest test("linear", backend, 42);
    const Operand input = test.normal(test.act(), {2501, 16});
    const Weight weight = random_weight(test, 50, 16, true);
    const TensorView out = test.output(test.act(), {2501, 50});
    const Linear::Output output{&weight.linear, out};
    test.ops().linear({.input = input.view, .outputs = {&output, 1}});
    test.expect(out, product(input.values, weight), product_tolerance(test.act(), 16));
  }
}

TEST_CASE("linear: a product whose tiles fill a large GPU") {
  for (const Backend& backend : backends()) {
    OpTest test("linear", backend, 47);
    for (const auto& [total_tokens, in_features, out_features, epilogue] :
         {std::tuple(760, 24, 16624, Epilogue::kStore), {380, 72, 16880, Epilogue::kAdd}}) {
      const Operand input = test.normal(test.act(), {total_tokens, in_features});
      const Weight weight = random_weight(test, out_features, in_features, false);
      const bool adds = epilogue == Epilogue::kAdd;
      const TensorView wide = adds ? test.normal(test.act(), {total_tokens, out_features + 8}).view
                                   : test.output(test.act(), {total_tokens, out_features + 8});
      const TensorView out = wide.slice(1, 8, out_features + 8);
      const std::vector<double> before = test.read(out);
      const Linear::Output output{&weight.linear, out, epilogue};
      test.ops().linear({.input = input.view, .outputs = {&output, 1}});
      std::vector<double> expected = product(input.values, weight);
      for (std::size_t i = 0; adds && i < expected.size(); ++i) expected[i] += before[i];
      test.expect(out, expected,
                  adds ? added_tolerance(test.act(), in_features) : product_tolerance(test.act(), in_features));
    }
  }
}

TEST_CASE("linear: several outputs of one input, with and without bias, in both dtypes, into rows of wider tensors") {
  for (const Backend& backend : backends()) {
    OpTest test("linear", backend, 43);
    constexpr std::int64_t kFeatures = 72;
    for (const std::int64_t total_tokens : {1, 40}) {
      for (const DType in : {test.act(), DType::kF32}) {
        const Operand wide_input = test.normal(in, {total_tokens, kFeatures + 8});
        const TensorView input = wide_input.view.slice(1, 8, kFeatures + 8);
        const Weight first = random_weight(test, 60, kFeatures, true),
                     second = random_weight(test, 10, kFeatures, false);
        const TensorView wide = test.output(test.act(), {total_tokens, 80}),
                         plain = test.output(DType::kF32, {total_tokens, 10});
        const std::array<Linear::Output, 3> outputs = {Linear::Output{&first.linear, wide.slice(1, 5, 65)},
                                                       {&second.linear, plain},
                                                       {&second.linear, wide.slice(1, 66, 76)}};
        test.ops().linear({.input = input, .outputs = outputs});
        const std::vector<double> values = test.read(input);
        test.expect(outputs[0].out, product(values, first), product_tolerance(test.act(), kFeatures));
        test.expect(outputs[1].out, product(values, second), product_tolerance(DType::kF32, kFeatures));
        test.expect(outputs[2].out, product(values, second), product_tolerance(test.act(), kFeatures));
        for (const auto& [begin, end] : {std::pair(0, 5), {65, 66}, {76, 80}}) {
          for (const double value : test.read(wide.slice(1, begin, end))) CHECK(std::isnan(value));
        }
      }
    }
  }
}

TEST_CASE("linear: few fp32 rows give the same alone and among others, to the digit where the backend says so") {
  for (const Backend& backend : backends()) {
    OpTest test("linear", backend, 47);
    for (const std::int64_t in_features : {70, 1088}) {
      const Operand input = test.normal(DType::kF32, {40, in_features});
      const Weight weight = random_weight(test, 24, in_features, true);
      const TensorView all = test.output(DType::kF32, {40, 24});
      const Linear::Output output{&weight.linear, all};
      const Tolerance close =
          backend.is_batch_invariant ? Tolerance{0, 0} : product_tolerance(DType::kF32, in_features);
      test.ops().linear({.input = input.view, .outputs = {&output, 1}});
      for (const auto& [begin, end] : {std::pair(0, 1), {5, 16}, {17, 40}}) {
        const TensorView some = test.output(DType::kF32, {end - begin, 24});
        const Linear::Output of_some{&weight.linear, some};
        test.ops().linear({.input = input.view.rows(begin, end), .outputs = {&of_some, 1}});
        test.expect(some, test.read(all.rows(begin, end)), close);
      }
    }
  }
}

TEST_CASE("linear: a product is added to what is there, or goes through GELU, where the caller says so") {
  for (const Backend& backend : backends()) {
    OpTest test("linear", backend, 48);
    constexpr std::int64_t kFeatures = 72;
    for (const std::int64_t total_tokens : {3, 300}) {
      for (const DType in : {test.act(), DType::kF32}) {
        const Operand input = test.normal(in, {total_tokens, kFeatures});
        const Weight weight = random_weight(test, 40, kFeatures, true);
        const Operand wide = test.normal(DType::kF32, {total_tokens, 48});
        const TensorView sums = wide.view.slice(1, 8, 48), activated = test.output(in, {total_tokens, 40});
        const std::vector<double> before = test.read(sums);
        const std::array outputs = {Linear::Output{&weight.linear, sums, Epilogue::kAdd},
                                    Linear::Output{&weight.linear, activated, Epilogue::kGelu}};
        test.ops().linear({.input = input.view, .outputs = outputs});
        std::vector<double> added = product(input.values, weight), expected;
        for (const double x : added) expected.push_back(0.5 * x * std::erfc(-x / std::numbers::sqrt2));
        for (std::size_t i = 0; i < added.size(); ++i) added[i] += before[i];
        Tolerance sum_tolerance = product_tolerance(DType::kF32, kFeatures);
        // 16 bits of the input: terms of unit variance in all, each off by up to 2^-18 of it; five times the spread.
        if (test.act() == DType::kBF16) sum_tolerance.absolute += 5 * std::ldexp(1.0, -18);
        test.expect(sums, added, sum_tolerance);
        // The product is rounded, then its GELU, whose slope is below 1.2.
        Tolerance close = tolerance(in, kFeatures, 2 / std::sqrt(static_cast<double>(kFeatures)), 2);
        close.absolute += sum_tolerance.absolute;
        test.expect(activated, expected, close);
      }
    }
  }
}

TEST_CASE("linear: a product is added to a stream of activations") {
  for (const Backend& backend : backends()) {
    OpTest test("linear", backend, 50);
    // Odd sizes, few rows and many, sizes that fill tiles.
    for (const auto& [total_tokens, in_features, out_features] :
         {std::array{3, 72, 40}, {65, 70, 21}, {300, 128, 64}, {1100, 192, 512}}) {
      for (const bool has_bias : {false, true}) {
        const Operand input = test.normal(test.act(), {total_tokens, in_features});
        const Weight weight = random_weight(test, out_features, in_features, has_bias);
        const Operand stream = test.normal(test.act(), {total_tokens, out_features + 24});
        const TensorView x = stream.view.slice(1, 8, 8 + out_features);
        const std::vector<double> before = test.read(x);
        const Linear::Output output{&weight.linear, x, Epilogue::kAdd};
        test.ops().linear({.input = input.view, .outputs = {&output, 1}});
        std::vector<double> expected = product(input.values, weight);
        for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += before[i];
        test.expect(x, expected, added_tolerance(test.act(), in_features));
      }
    }
  }
}

TEST_CASE("linear: outputs whose weights, biases and columns lie side by side are each their own product") {
  for (const Backend& backend : backends()) {
    OpTest test("linear", backend, 49);
    for (const DType in : {test.act(), DType::kF32}) {
      const Operand input = test.normal(in, {9, 64});
      const Weight weight = random_weight(test, 48, 64, true);
      const LinearWeight first = weight.linear.rows(0, 16), second = weight.linear.rows(16, 48);
      const TensorView out = test.output(DType::kF32, {9, 48});
      const std::array outputs = {Linear::Output{&first, out.slice(1, 0, 16)},
                                  Linear::Output{&second, out.slice(1, 16, 48)}};
      test.ops().linear({.input = input.view, .outputs = outputs});
      test.expect(out, product(input.values, weight), product_tolerance(DType::kF32, 64));
    }
  }
}

TEST_CASE("linear: no tokens, or no outputs, is no work") {
  for (const Backend& backend : backends()) {
    OpTest test("linear", backend, 44);
    const Weight weight = random_weight(test, 6, 8, true), none = random_weight(test, 0, 8, false);
    const Operand input = test.normal(test.act(), {20, 8});
    const TensorView out = test.output(test.act(), {20, 6});
    const std::array<Linear::Output, 2> outputs = {Linear::Output{&none.linear, test.output(test.act(), {20, 0})},
                                                   {&weight.linear, out}};
    test.ops().linear({.input = input.view, .outputs = outputs});
    test.expect(out, product(input.values, weight), product_tolerance(test.act(), 8));

    const Linear::Output empty{&weight.linear, out.rows(0, 0)};
    test.ops().linear({.input = input.view.rows(0, 0), .outputs = {&empty, 1}});
    test.ops().linear({.input = input.view, .outputs = {}});
    test.ops().linear_swiglu(
        {.input = input.view.rows(0, 0), .gate = &weight.linear, .up = &weight.linear, .out = out.rows(0, 0)});
  }
}

TEST_CASE("linear: an infinite or undefined input spoils its own row and no other") {
  for (const Backend& backend : backends()) {
    OpTest test("linear", backend, 45);
    std::vector<double> values(7 * 9, 1.0);
    values[3 * 9 + 8] = std::numeric_limits<double>::quiet_NaN();
    const Operand input = test.with_values(test.act(), {7, 9}, values);
    const Weight weight = random_weight(test, 5, 9, false);
    const TensorView out = test.output(test.act(), {7, 5});
    const Linear::Output output{&weight.linear, out};
    test.ops().linear({.input = input.view, .outputs = {&output, 1}});
    const std::vector<double> actual = test.read(out);
    for (std::size_t i = 0; i < actual.size(); ++i) CHECK(std::isnan(actual[i]) == (i / 5 == 3));
  }
}

TEST_CASE("linear_swiglu: silu of the gate times up, rounded where the reference rounds") {
  struct Case {
    std::int64_t total_tokens, in_features, out_features;
    bool has_bias;
    std::int64_t margin;  // of the rows that the result lies in, on both sides
  };
  // Margins of 8 leave rows that tensor cores can write; the last one has more tiles than a GPU has multiprocessors.
  for (const Backend& backend : backends()) {
    OpTest test("linear_swiglu", backend, 46);
    for (const auto& [total_tokens, in_features, out_features, has_bias, margin] :
         {Case{1, 8, 1, false, 2}, Case{3, 40, 20, true, 2}, Case{100, 1030, 60, false, 2},
          Case{1200, 16, 50, false, 2}, Case{1, 64, 128, false, 8}, Case{129, 72, 136, false, 8},
          Case{300, 520, 264, false, 8}, Case{800, 40, 4616, false, 8}}) {
      CAPTURE(total_tokens);
      const Operand input = test.normal(test.act(), {total_tokens, in_features});
      const Weight gate = random_weight(test, out_features, in_features, has_bias);
      const Weight up = random_weight(test, out_features, in_features, has_bias);
      const TensorView wide = test.output(test.act(), {total_tokens, out_features + 2 * margin});
      const TensorView out = wide.slice(1, margin, out_features + margin);
      test.ops().linear_swiglu({.input = input.view, .gate = &gate.linear, .up = &up.linear, .out = out});
      const std::vector<double> gates = product(input.values, gate), ups = product(input.values, up);
      std::vector<double> expected;
      for (std::size_t i = 0; i < gates.size(); ++i) {
        const double activated = rounded(test.act(), silu(rounded(test.act(), gates[i])));
        expected.push_back(rounded(test.act(), activated * rounded(test.act(), ups[i])));
      }
      // Factors of up to 4, each with the error of a product.
      const Tolerance close = tolerance(test.act(), in_features, 4 / std::sqrt(static_cast<double>(in_features)), 4);
      test.expect(out, expected, {close.relative, close.absolute});
      if (test.act() == DType::kBF16 && total_tokens > 3) test.expect_rounded(out, expected);
    }
  }
}
