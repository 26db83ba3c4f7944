#include <doctest/doctest.h>

#include <cmath>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "ops/testing/op_test.h"

using namespace treble;
using namespace treble::testing;

namespace {

/// An INT8 weight with random codes of the whole range, or one code everywhere.
struct Int8Case {
  std::vector<std::int8_t> codes;
  std::vector<float> row_scale, bias;
  LinearWeight linear;
};

Int8Case make_int8(Ops& ops, std::int64_t out_features, std::int64_t in_features, std::int64_t group, bool has_bias,
                   unsigned seed, std::optional<std::int8_t> every_code = std::nullopt) {
  Int8Case out;
  std::mt19937 random(seed);
  const auto uniform = [&](float low, float high) { return std::uniform_real_distribution<float>(low, high)(random); };
  for (std::int64_t i = 0; i < out_features * in_features; ++i)
    out.codes.push_back(every_code.value_or(static_cast<std::int8_t>(random())));
  for (std::int64_t i = 0; i < out_features; ++i) {
    out.row_scale.push_back(uniform(0.001f, 0.01f));
    out.bias.push_back(uniform(-1, 1));
  }
  out.linear.format = WeightFormat::kInt8;
  out.linear.weight = ops.place_weight(TensorView(out.codes.data(), DType::kI8, {out_features, in_features}));
  out.linear.int8.row_scale = ops.place_weight(TensorView(out.row_scale.data(), DType::kF32, {out_features}));
  out.linear.int8.rotation_group = group;
  if (has_bias) out.linear.bias = ops.place_weight(TensorView(out.bias.data(), DType::kF32, {out_features}));
  return out;
}

/// Entry of the rotation by its definition: -1 for every base-4 digit where those of row and column add up to 3.
double rotation_entry(std::int64_t row, std::int64_t column, std::int64_t group) {
  double sign = 1;
  for (std::int64_t size = group; size > 1; size /= 4, row /= 4, column /= 4)
    if (row % 4 + column % 4 == 3) sign = -sign;
  return sign / std::sqrt(static_cast<double>(group));
}

/// The definition: codes and sums in integers, scales in fp32. Exact while the rotated inputs are, as small integers'
/// are: every sum of them is a multiple of 1/64 below 2^18.
std::vector<double> int8_linear(const std::vector<double>& input, const Int8Case& weight) {
  const std::int64_t out_features = weight.linear.out_features(), in_features = weight.linear.in_features();
  const std::int64_t group = weight.linear.int8.rotation_group;
  std::vector<double> out;
  for (std::int64_t t = 0; t < std::ssize(input) / in_features; ++t) {
    const double* row = input.data() + t * in_features;
    std::vector<float> rotated;
    float largest = 0;
    for (std::int64_t i = 0; i < in_features; ++i) {
      double sum = 0;
      for (std::int64_t j = 0; j < group; ++j) sum += rotation_entry(i % group, j, group) * row[i / group * group + j];
      rotated.push_back(static_cast<float>(sum));
      largest = std::max(largest, std::abs(rotated.back()));
    }
    const float scale = std::max(largest * (1.0f / 127.0f), 1e-30f);
    for (std::int64_t o = 0; o < out_features; ++o) {
      std::int64_t sum = 0;
      for (std::int64_t i = 0; i < in_features; ++i)
        sum += static_cast<std::int64_t>(std::nearbyint(rotated[static_cast<std::size_t>(i)] / scale)) *
               weight.codes[static_cast<std::size_t>(o * in_features + i)];
      float y = static_cast<float>(sum) * scale * weight.row_scale[static_cast<std::size_t>(o)];
      if (weight.linear.bias) y += weight.bias[static_cast<std::size_t>(o)];
      out.push_back(static_cast<double>(y));
    }
  }
  return out;
}

Operand small_integers(OpTest& test, std::int64_t rows, std::int64_t columns, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<double> values(static_cast<std::size_t>(rows * columns));
  for (double& value : values) value = static_cast<double>(random() % 65) - 32;
  return test.with_values(test.act(), {rows, columns}, values);
}

std::vector<double> rounded(DType dtype, std::vector<double> values) {
  for (double& value : values) value = testing::rounded(dtype, value);
  return values;
}

constexpr Tolerance kExact = {0, 0};

}  // namespace

TEST_CASE("linear int8: the format's own arithmetic to the last bit, for all groups, sizes of tile and tail") {
  struct Case {
    std::int64_t total_tokens, in_features, out_features, group;
  };
  for (const Backend& backend : backends()) {
    OpTest test("linear int8", backend, 71);
    unsigned seed = 0;
    for (const auto& [total_tokens, in_features, out_features, group] :
         {Case{1, 33, 1, 1}, Case{3, 36, 7, 4}, Case{7, 112, 50, 16}, Case{5, 320, 49, 64}, Case{200, 256, 53, 256},
          Case{13, 1024, 4, 1024}}) {
      CAPTURE(group);
      const Operand input = small_integers(test, total_tokens, in_features, ++seed);
      for (const bool has_bias : {false, true}) {
        const Int8Case weight = make_int8(test.ops(), out_features, in_features, group, has_bias, ++seed);
        const TensorView out = test.output(test.act(), {total_tokens, out_features});
        const Linear::Output output{&weight.linear, out};
        test.ops().linear({.input = input.view, .outputs = {&output, 1}});
        test.expect(out, rounded(test.act(), int8_linear(input.values, weight)), kExact);
      }
    }
  }
}

TEST_CASE("linear int8: sums of the largest codes do not overflow or saturate") {
  for (const Backend& backend : backends()) {
    OpTest test("linear int8", backend, 72);
    constexpr std::int64_t kIn = 4096;
    const Int8Case weight = make_int8(test.ops(), 3, kIn, 1, false, 1, std::int8_t{-128});
    const Operand input = test.with_values(test.act(), {2, kIn}, std::vector<double>(2 * kIn, -64.0));
    const TensorView out = test.output(DType::kF32, {2, 3});
    const Linear::Output output{&weight.linear, out};
    test.ops().linear({.input = input.view, .outputs = {&output, 1}});
    test.expect(out, int8_linear(input.values, weight), kExact);
  }
}

TEST_CASE("linear int8: outputs of two groups and a plain one read one input, rows of wider tensors") {
  for (const Backend& backend : backends()) {
    OpTest test("linear int8", backend, 73);
    constexpr std::int64_t kIn = 64, kTokens = 30;
    const Operand input = small_integers(test, kTokens, kIn, 1);
    const Int8Case first = make_int8(test.ops(), 50, kIn, 64, true, 2),
                   second = make_int8(test.ops(), 9, kIn, 16, false, 3);
    const Operand dense_values = test.normal(DType::kBF16, {5, kIn}, 0.1);
    const LinearWeight dense = {.weight = dense_values.view};
    const TensorView wide = test.output(test.act(), {kTokens, 70});
    const std::array<Linear::Output, 3> outputs = {Linear::Output{&first.linear, wide.slice(1, 2, 52)},
                                                   {&dense, wide.slice(1, 52, 57)},
                                                   {&second.linear, wide.slice(1, 60, 69)}};
    test.ops().linear({.input = input.view, .outputs = outputs});
    test.expect(outputs[0].out, rounded(test.act(), int8_linear(input.values, first)), kExact);
    test.expect(outputs[2].out, rounded(test.act(), int8_linear(input.values, second)), kExact);
    std::vector<double> product;
    for (std::int64_t t = 0; t < kTokens; ++t) {
      for (std::int64_t o = 0; o < 5; ++o) {
        double sum = 0;
        for (std::int64_t i = 0; i < kIn; ++i) sum += input[t * kIn + i] * dense_values[o * kIn + i];
        product.push_back(sum);
      }
    }
    test.expect(outputs[1].out, product, tolerance(test.act(), kIn, 2));
    for (const double value : test.read(wide.slice(1, 0, 2))) CHECK(std::isnan(value));
    for (const double value : test.read(wide.slice(1, 57, 60))) CHECK(std::isnan(value));
  }
}

TEST_CASE("linear int8: an input that is not finite spoils its own row and no other") {
  for (const Backend& backend : backends()) {
    OpTest test("linear int8", backend, 74);
    std::vector<double> values(7 * 16, 1.0);
    values[3 * 16 + 8] = std::numeric_limits<double>::infinity();
    const Operand input = test.with_values(test.act(), {7, 16}, values);
    const Int8Case weight = make_int8(test.ops(), 5, 16, 16, true, 1);
    const TensorView out = test.output(test.act(), {7, 5});
    const Linear::Output output{&weight.linear, out};
    test.ops().linear({.input = input.view, .outputs = {&output, 1}});
    const std::vector<double> actual = test.read(out);
    for (std::size_t i = 0; i < actual.size(); ++i) CHECK(std::isnan(actual[i]) == (i / 5 == 3));
  }
}

TEST_CASE("linear int8: SwiGLU of codes, and of codes beside a plain weight") {
  for (const Backend& backend : backends()) {
    OpTest test("linear_swiglu int8", backend, 75);
    constexpr std::int64_t kIn = 256, kOut = 60;
    for (const std::int64_t total_tokens : {1, 100}) {
      const Operand input = small_integers(test, total_tokens, kIn, 1);
      const Int8Case gate = make_int8(test.ops(), kOut, kIn, 256, true, 2),
                     up = make_int8(test.ops(), kOut, kIn, 256, false, 3);
      const TensorView gates = test.output(test.act(), {total_tokens, kOut}),
                       out = test.output(test.act(), {total_tokens, kOut});
      test.ops().linear_swiglu({.input = input.view, .gate = &gate.linear, .up = &up.linear, .out = out});
      const std::vector<double> g = int8_linear(input.values, gate), u = int8_linear(input.values, up);
      std::vector<double> expected;
      for (std::size_t i = 0; i < g.size(); ++i) {
        const double x = testing::rounded(test.act(), g[i]);
        const double silu = testing::rounded(test.act(), x / (1 + std::exp(-x)));
        expected.push_back(testing::rounded(test.act(), silu * testing::rounded(test.act(), u[i])));
      }
      test.expect(out, expected, tolerance(test.act(), 1, 1, 2));

      const LinearWeight dense = {.weight = test.normal(DType::kBF16, {kOut, kIn}, 0.01).view};
      test.ops().linear_swiglu({.input = input.view, .gate = &gate.linear, .up = &dense, .out = gates});
      for (const double value : test.read(gates)) CHECK(std::isfinite(value));
    }
  }
}

TEST_CASE("linear int8: what a producer wrote for INT8 Linears is what they would make of its plain output") {
  for (const Backend& backend : backends()) {
    OpTest test("linear int8", backend, 76);
    // Groups of 256 are written by the norms themselves on some backends, others never.
    for (const auto& [group, head_dim] : {std::pair<std::int64_t, std::int64_t>{16, 32}, {256, 128}, {256, 256}}) {
      CAPTURE(group);
      CAPTURE(head_dim);
      const std::int64_t num_heads = 1024 / head_dim, width = num_heads * head_dim;
      constexpr std::int64_t kTokens = 5;
      const Int8Case weight = make_int8(test.ops(), 20, width, group, true, 1);
      const Operand dense = test.normal(DType::kBF16, {width, width}, 0.1);
      const LinearWeight plain = {.weight = dense.view};
      Workspace workspace(test.ops().memory());
      const auto product = [&](const LinearInput& input) {
        const TensorView out = test.output(DType::kF32, {kTokens, 20});
        const Linear::Output output{&weight.linear, out};
        test.ops().linear({.input = input, .outputs = {&output, 1}});
        return test.read(out);
      };
      const auto check = [&](const char* producer, const auto& produce) {
        CAPTURE(producer);
        const Workspace::Scope scope(workspace);
        const LinearInput both = test.ops().linear_input(workspace, kTokens, {&weight.linear, &plain}),
                          input = test.ops().linear_input(workspace, kTokens, {&weight.linear});
        REQUIRE(both.plain);
        REQUIRE(both.quantized);
        REQUIRE(input.quantized);
        produce(both);
        produce(input);
        const std::vector<double> expected = product(both.plain);
        for (const double value : expected) CHECK(std::isfinite(value));
        CHECK(product(both) == expected);
        CHECK(product(input) == expected);
      };
      const Operand gain = test.normal(DType::kBF16, {width}), head_gain = test.normal(DType::kBF16, {head_dim});
      const TensorView rows = test.normal(test.act(), {kTokens, width}),
                       heads = test.normal(test.act(), {kTokens, num_heads, head_dim}),
                       gate = test.normal(test.act(), {kTokens, num_heads, head_dim});
      check("rms_norm", [&](const LinearInput& out) {
        test.ops().rms_norm({.x = rows, .weight = gain, .eps = 1e-6f, .out = out});
      });
      check("gated_rms_norm", [&](const LinearInput& out) {
        test.ops().gated_rms_norm({.x = heads, .gate = gate, .weight = head_gain, .eps = 1e-6f, .out = out});
      });
      check("layer_norm", [&](const LinearInput& out) {
        test.ops().layer_norm({.x = rows, .weight = gain, .bias = gain, .eps = 1e-6f, .out = out});
      });
      const std::vector<std::int32_t> borders = {0, kTokens};
      const TensorView cu_seqlens = test.host_integers({2}, borders);
      check("attention", [&](const LinearInput& out) {
        test.ops().attention({.query = heads,
                              .key = heads,
                              .value = gate,
                              .gate = {},
                              .cu_seqlens_q = cu_seqlens,
                              .cu_seqlens_k = cu_seqlens,
                              .causal = false,
                              .scale = 1,
                              .out = out});
      });
      check("linear_swiglu", [&](const LinearInput& out) {
        test.ops().linear_swiglu({.input = rows, .gate = &plain, .up = &plain, .out = out});
      });
    }
  }
}

TEST_CASE("linear int8: a norm that writes codes normalises as it does without them") {
  for (const Backend& backend : backends()) {
    OpTest test("rms_norm int8", backend, 77);
    for (const std::int64_t width : {256, 768, 12288}) {
      CAPTURE(width);
      constexpr std::int64_t kTokens = 2;
      const Int8Case weight = make_int8(test.ops(), 1, width, 256, false, 1);
      const Operand gain = test.normal(DType::kBF16, {width}), x = test.normal(test.act(), {kTokens, width});
      Workspace workspace(test.ops().memory());
      LinearInput with_codes = test.output(test.act(), {kTokens, width});
      with_codes.quantized = QuantizedInput::take(workspace, kTokens, weight.linear);
      const TensorView without = test.output(test.act(), {kTokens, width});
      test.ops().rms_norm({.x = x, .weight = gain, .eps = 1e-6f, .out = with_codes});
      test.ops().rms_norm({.x = x, .weight = gain, .eps = 1e-6f, .out = without});
      // The sums of squares may be in another order.
      test.expect(with_codes.plain, test.read(without), tolerance(test.act(), 1, 2));
    }
  }
}

TEST_CASE("linear int8: products that are added to what is there, and products of Linears that lie side by side") {
  for (const Backend& backend : backends()) {
    OpTest test("linear int8", backend, 78);
    constexpr std::int64_t kIn = 256, kTokens = 9, kOut = 64;
    const Operand input = small_integers(test, kTokens, kIn, 1);
    Int8Case both = make_int8(test.ops(), 2 * kOut, kIn, 64, true, 2);
    const LinearWeight first = both.linear.rows(0, kOut), second = both.linear.rows(kOut, 2 * kOut);
    const TensorView wide = test.output(test.act(), {kTokens, 2 * kOut});
    const std::array outputs = {Linear::Output{&first, wide.slice(1, 0, kOut)},
                                Linear::Output{&second, wide.slice(1, kOut, 2 * kOut)}};
    test.ops().linear({.input = input.view, .outputs = outputs});
    const std::vector<double> product = int8_linear(input.values, both);
    test.expect(wide, rounded(test.act(), product), kExact);

    const Operand sum = test.normal(DType::kF32, {kTokens, 2 * kOut});
    const Linear::Output adds{&both.linear, sum.view, Epilogue::kAdd};
    test.ops().linear({.input = input.view, .outputs = {&adds, 1}});
    std::vector<double> expected;
    for (std::size_t i = 0; i < product.size(); ++i)
      expected.push_back(testing::rounded(DType::kF32, sum.values[i] + product[i]));
    test.expect(sum, expected, kExact);
  }
}
