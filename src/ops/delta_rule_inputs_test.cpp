#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "ops/testing/op_test.h"
#include "tensor/bfloat16.h"

using namespace treble;
using namespace treble::testing;

namespace {

using Values = std::vector<double>;
using Lengths = std::vector<std::int32_t>;

struct Sizes {
  std::int64_t num_k_heads, num_v_heads, key_head_dim, value_head_dim, conv_kernel_size;

  std::int64_t key_dim() const { return num_k_heads * key_head_dim; }
  std::int64_t conv_dim() const { return 2 * key_dim() + num_v_heads * value_head_dim; }
};
constexpr Sizes kSmall = {2, 4, 32, 24, 4};

struct Inputs {
  Sizes sizes;
  Lengths borders;
  Operand mixed, a, b, conv_weight, A_log, dt_bias;
};

Inputs random_inputs(OpTest& test, Sizes sizes, const Lengths& lengths) {
  Lengths borders = {0};
  for (const std::int32_t length : lengths) borders.push_back(borders.back() + length);
  const std::int64_t total_tokens = borders.back();
  return {.sizes = sizes,
          .borders = borders,
          .mixed = test.normal(test.act(), {total_tokens, sizes.conv_dim()}),
          .a = test.normal(test.act(), {total_tokens, sizes.num_v_heads}, 8),  // softplus on both sides of 20
          .b = test.normal(test.act(), {total_tokens, sizes.num_v_heads}, 3),
          .conv_weight = test.normal(DType::kBF16, {sizes.conv_dim(), sizes.conv_kernel_size}, 0.5),
          .A_log = test.normal(DType::kBF16, {sizes.num_v_heads}),
          .dt_bias = test.normal(DType::kBF16, {sizes.num_v_heads}, 8)};
}

Operand random_state(OpTest& test, const Inputs& inputs) {
  return test.normal(test.act(), {static_cast<std::int64_t>(inputs.borders.size()) - 1, inputs.sizes.conv_dim(),
                                  inputs.sizes.conv_kernel_size - 1});
}

struct Outputs {
  TensorView query, key, value, log_decay, beta;
};

/// Runs tokens [begin, end) of the inputs.
Outputs run(OpTest& test, const Inputs& inputs, const TensorView& state, std::int32_t begin, std::int32_t end,
            const Lengths& borders) {
  const Sizes& sizes = inputs.sizes;
  const std::int64_t total_tokens = end - begin;
  const Outputs outputs = {
      .query = test.output(test.act(), {total_tokens, sizes.num_k_heads, sizes.key_head_dim}),
      .key = test.output(test.act(), {total_tokens, sizes.num_k_heads, sizes.key_head_dim}),
      .value = test.output(test.act(), {total_tokens, sizes.num_v_heads, sizes.value_head_dim}),
      .log_decay = test.output(DType::kF32, {total_tokens, sizes.num_v_heads}),
      .beta = test.output(DType::kF32, {total_tokens, sizes.num_v_heads}),
  };
  test.ops().delta_rule_inputs({
      .mixed = inputs.mixed.view.rows(begin, end),
      .a = inputs.a.view.rows(begin, end),
      .b = inputs.b.view.rows(begin, end),
      .conv_weight = inputs.conv_weight,
      .A_log = inputs.A_log,
      .dt_bias = inputs.dt_bias,
      .conv_state = state,
      .cu_seqlens = test.host_integers({static_cast<std::int64_t>(borders.size())}, borders),
      .query = outputs.query,
      .key = outputs.key,
      .value = outputs.value,
      .log_decay = outputs.log_decay,
      .beta = outputs.beta,
  });
  return outputs;
}

Outputs run(OpTest& test, const Inputs& inputs, const TensorView& state) {
  return run(test, inputs, state, 0, inputs.borders.back(), inputs.borders);
}

double round_to(DType dtype, double x) {
  return dtype == DType::kBF16 ? static_cast<double>(to_float(to_bfloat16(static_cast<float>(x)))) : x;
}

struct Expected {
  Values query, key, value, log_decay, beta, state;
};

/// @param state  [N, conv_dim, conv_kernel_size - 1], or empty
Expected define(const Inputs& inputs, const Values& state, DType act) {
  const Sizes& sizes = inputs.sizes;
  const std::int64_t conv_dim = sizes.conv_dim(), taps = sizes.conv_kernel_size;
  Expected expected;
  expected.state = state;
  for (std::size_t n = 0; n + 1 < inputs.borders.size(); ++n) {
    const std::int64_t begin = inputs.borders[n], end = inputs.borders[n + 1];
    const auto state_index = [&](std::int64_t channel, std::int64_t i) {
      return static_cast<std::size_t>((static_cast<std::int64_t>(n) * conv_dim + channel) * (taps - 1) + i);
    };
    // A token before the sequence's first comes from the state, or is zero.
    const auto mixed = [&](std::int64_t t, std::int64_t channel) {
      if (t >= begin) return inputs.mixed[t * conv_dim + channel];
      return state.empty() ? 0.0 : state[state_index(channel, t - begin + taps - 1)];
    };
    for (std::int64_t t = begin; t < end; ++t) {
      Values activated;
      for (std::int64_t channel = 0; channel < conv_dim; ++channel) {
        double sum = 0;
        for (std::int64_t tap = 0; tap < taps; ++tap)
          sum += inputs.conv_weight[channel * taps + tap] * mixed(t - taps + 1 + tap, channel);
        activated.push_back(sum / (1 + std::exp(-sum)));
      }
      const auto append_heads = [&](Values& out, std::int64_t channel, std::int64_t num_heads, std::int64_t head_dim,
                                    bool normalise) {
        for (std::int64_t head = 0; head < num_heads; ++head) {
          const double* x = activated.data() + channel + head * head_dim;
          double squares = 1e-6;
          for (std::int64_t d = 0; d < head_dim; ++d) squares += x[d] * x[d];
          for (std::int64_t d = 0; d < head_dim; ++d) out.push_back(normalise ? x[d] / std::sqrt(squares) : x[d]);
        }
      };
      append_heads(expected.query, 0, sizes.num_k_heads, sizes.key_head_dim, true);
      append_heads(expected.key, sizes.key_dim(), sizes.num_k_heads, sizes.key_head_dim, true);
      append_heads(expected.value, 2 * sizes.key_dim(), sizes.num_v_heads, sizes.value_head_dim, false);
      for (std::int64_t head = 0; head < sizes.num_v_heads; ++head) {
        const std::int64_t i = t * sizes.num_v_heads + head;
        expected.beta.push_back(round_to(act, 1 / (1 + std::exp(-inputs.b[i]))));
        expected.log_decay.push_back(-std::exp(inputs.A_log[head]) *
                                     std::log1p(std::exp(inputs.a[i] + inputs.dt_bias[head])));
      }
    }
    if (state.empty()) continue;
    for (std::int64_t channel = 0; channel < conv_dim; ++channel) {
      for (std::int64_t i = 0; i < taps - 1; ++i)
        expected.state[state_index(channel, i)] = mixed(end - (taps - 1) + i, channel);
    }
  }
  return expected;
}

void expect(OpTest& test, const Outputs& outputs, const Expected& expected) {
  test.expect(outputs.query, expected.query, tolerance(test.act(), 32, 0.3));
  test.expect(outputs.key, expected.key, tolerance(test.act(), 32, 0.3));
  test.expect(outputs.value, expected.value, tolerance(test.act(), 8, 1));
  test.expect(outputs.log_decay, expected.log_decay, tolerance(DType::kF32, 2, 1));
  test.expect(outputs.beta, expected.beta, tolerance(test.act(), 1));
}

void expect_definition(OpTest& test, const Inputs& inputs) {
  const Operand state = random_state(test, inputs);
  const Outputs outputs = run(test, inputs, state);
  const Expected expected = define(inputs, state.values, test.act());
  expect(test, outputs, expected);
  test.expect(state, expected.state, {0, 0});
}

}  // namespace

TEST_CASE("delta_rule_inputs: one token, a few, and more than one block of them") {
  for (const Backend& backend : backends()) {
    for (const std::int32_t length : {1, 2, 3, 4, 63, 64, 65, 257, 600}) {
      OpTest test("delta_rule_inputs", backend, static_cast<std::uint32_t>(length));
      expect_definition(test, random_inputs(test, kSmall, {length}));
    }
  }
}

TEST_CASE("delta_rule_inputs: convolutions of 1 to 8 taps") {
  for (const Backend& backend : backends()) {
    for (std::int64_t taps = 1; taps <= 8; ++taps) {
      OpTest test("delta_rule_inputs", backend, 1);
      Sizes sizes = kSmall;
      sizes.conv_kernel_size = taps;
      expect_definition(test, random_inputs(test, sizes, {20, 3}));
    }
  }
}

TEST_CASE("delta_rule_inputs: any head sizes and numbers of heads") {
  for (const Backend& backend : backends()) {
    for (const Sizes sizes :
         {Sizes{1, 1, 1, 1, 4}, Sizes{3, 3, 5, 7, 4}, Sizes{2, 6, 128, 128, 4}, Sizes{1, 17, 600, 9, 4}}) {
      OpTest test("delta_rule_inputs", backend, 2);
      expect_definition(test, random_inputs(test, sizes, {70}));
    }
  }
}

TEST_CASE("delta_rule_inputs: without a state a sequence starts from zero, not from its neighbour") {
  for (const Backend& backend : backends()) {
    OpTest test("delta_rule_inputs", backend, 3);
    const Inputs inputs = random_inputs(test, kSmall, {5, 1, 2, 0, 70, 3, 300});
    expect(test, run(test, inputs, {}), define(inputs, {}, test.act()));
  }
}

TEST_CASE("delta_rule_inputs: sequences shorter than the convolution move the state up") {
  for (const Backend& backend : backends()) {
    OpTest test("delta_rule_inputs", backend, 4);
    expect_definition(test, random_inputs(test, kSmall, {1, 2, 3, 0, 4}));
  }
}

TEST_CASE("delta_rule_inputs: a sequence cut in two calls equals one call") {
  for (const Backend& backend : backends()) {
    for (const std::int32_t cut : {1, 2, 64, 150}) {
      OpTest test("delta_rule_inputs", backend, 5);
      const Inputs inputs = random_inputs(test, kSmall, {200});
      const Operand whole_state = random_state(test, inputs);
      const Operand state =
          test.with_values(test.act(), {1, kSmall.conv_dim(), kSmall.conv_kernel_size - 1}, whole_state.values);
      const Outputs whole = run(test, inputs, whole_state);
      const Outputs first = run(test, inputs, state, 0, cut, {0, cut});
      const Outputs second = run(test, inputs, state, cut, 200, {0, 200 - cut});
      const Tolerance same = {0, 0};
      test.expect(first.key, test.read(whole.key.rows(0, cut)), same);
      test.expect(second.key, test.read(whole.key.rows(cut, 200)), same);
      test.expect(second.value, test.read(whole.value.rows(cut, 200)), same);
      test.expect(state, test.read(whole_state), same);
    }
  }
}

TEST_CASE("delta_rule_inputs: reads projections that lie side by side in wider rows") {
  for (const Backend& backend : backends()) {
    OpTest test("delta_rule_inputs", backend, 6);
    Inputs inputs = random_inputs(test, kSmall, {40});
    const Outputs packed = run(test, inputs, {});
    const std::int64_t width = kSmall.conv_dim() + 2 * kSmall.num_v_heads;
    Values joined;
    for (std::int64_t t = 0; t < 40; ++t) {
      for (std::int64_t c = 0; c < kSmall.conv_dim(); ++c) joined.push_back(inputs.mixed[t * kSmall.conv_dim() + c]);
      for (std::int64_t n = 0; n < kSmall.num_v_heads; ++n) joined.push_back(inputs.a[t * kSmall.num_v_heads + n]);
      for (std::int64_t n = 0; n < kSmall.num_v_heads; ++n) joined.push_back(inputs.b[t * kSmall.num_v_heads + n]);
    }
    const Operand rows = test.with_values(test.act(), {40, width}, joined);
    inputs.mixed.view = rows.view.slice(1, 0, kSmall.conv_dim());
    inputs.a.view = rows.view.slice(1, kSmall.conv_dim(), kSmall.conv_dim() + kSmall.num_v_heads);
    inputs.b.view = rows.view.slice(1, kSmall.conv_dim() + kSmall.num_v_heads, width);
    const Outputs strided = run(test, inputs, {});
    test.expect(strided.query, test.read(packed.query), {0, 0});
    test.expect(strided.value, test.read(packed.value), {0, 0});
    test.expect(strided.log_decay, test.read(packed.log_decay), {0, 0});
    test.expect(strided.beta, test.read(packed.beta), {0, 0});
  }
}

TEST_CASE("delta_rule_inputs: gives the worked examples of the model's description") {
  // f(i, s) = ((37 i + 11 s) mod 101) / 50 - 1
  const auto f = [](std::int64_t i, int s) { return static_cast<double>((37 * i + 11 * s) % 101) / 50 - 1; };
  for (const Backend& backend : backends()) {
    OpTest test("delta_rule_inputs", backend, 0);
    if (test.act() != DType::kF32) continue;  // the examples have no roundings
    Inputs inputs = random_inputs(test, {1, 1, 1, 1, 4}, {5});
    inputs.a = test.with_values(test.act(), {5, 1}, Values{f(0, 4), f(1, 4), f(2, 4), f(3, 4), f(4, 4)});
    inputs.b = test.with_values(test.act(), {5, 1}, Values{f(0, 5), f(1, 5), f(2, 5), f(3, 5), f(4, 5)});
    inputs.A_log = test.with_values(DType::kBF16, {1}, Values{0.5});
    inputs.dt_bias = test.with_values(DType::kBF16, {1}, Values{-0.25});
    const Values taps = {0.1, -0.2, 0.3, 0.4}, tokens = {1, 2, -1, 0.5, 3};
    Values weights, mixed;
    for (int channel = 0; channel < 3; ++channel) weights.insert(weights.end(), taps.begin(), taps.end());
    for (const double x : tokens) mixed.insert(mixed.end(), 3, x);
    inputs.conv_weight = test.with_values(DType::kBF16, {3, 4}, weights);
    inputs.mixed = test.with_values(test.act(), {5, 3}, mixed);

    const Outputs outputs = run(test, inputs, {});
    test.expect(outputs.beta, Values{0.5249792, 0.6984652, 0.391741, 0.5744425, 0.2728918}, {0, 2e-7});
    test.expect(outputs.log_decay, Values{-0.8658473, -1.4758742, -0.5577189, -1.008614, -1.6787635}, {0, 3e-7});
    // The example's weights are no bfloat16s.
    test.expect(outputs.value, Values{0.2394751, 0.8252861, 0, -0.1605249, 1.4909174}, {0.004, 0.001});
  }
}
