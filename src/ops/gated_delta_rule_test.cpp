#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/testing/op_test.h"

using namespace treble;
using namespace treble::testing;

namespace {

using Values = std::vector<double>;
using Lengths = std::vector<std::int32_t>;

struct Sizes {
  std::int64_t num_k_heads, num_v_heads, key_head_dim, value_head_dim;
};
constexpr Sizes kSmall = {2, 4, 32, 24};
constexpr Sizes kModel = {1, 3, 128, 128};

Lengths borders_of(const Lengths& lengths) {
  Lengths borders = {0};
  for (const std::int32_t length : lengths) borders.push_back(borders.back() + length);
  return borders;
}

/// Rows of `width` elements, each of length 1.
Values unit_rows(Values values, std::int64_t width) {
  for (auto row = values.begin(); row != values.end(); row += width) {
    double squares = 1e-6;
    std::for_each(row, row + width, [&](double x) { squares += x * x; });
    std::for_each(row, row + width, [&](double& x) { x /= std::sqrt(squares); });
  }
  return values;
}

/// Inputs of one call over packed sequences.
struct Inputs {
  Sizes sizes;
  Lengths borders;
  Operand query, key, value, log_decay, beta;
  double scale;
};

Inputs random_inputs(OpTest& test, Sizes sizes, const Lengths& lengths, double lowest_log_decay = -0.3) {
  const Lengths borders = borders_of(lengths);
  const std::int64_t total_tokens = borders.back();
  const OpTest::Shape key_shape = {total_tokens, sizes.num_k_heads, sizes.key_head_dim};
  const OpTest::Shape value_shape = {total_tokens, sizes.num_v_heads, sizes.value_head_dim};
  const OpTest::Shape gate_shape = {total_tokens, sizes.num_v_heads};
  const auto units = [&] {
    return test.with_values(test.act(), key_shape,
                            unit_rows(test.normal(DType::kF32, key_shape).values, sizes.key_head_dim));
  };
  return {.sizes = sizes,
          .borders = borders,
          .query = units(),
          .key = units(),
          .value = test.normal(test.act(), value_shape),
          .log_decay = test.uniform(DType::kF32, gate_shape, lowest_log_decay, 0),
          .beta = test.uniform(DType::kF32, gate_shape, 0, 1),
          .scale = 1 / std::sqrt(static_cast<double>(sizes.key_head_dim))};
}

std::int64_t state_size(const Inputs& inputs) {
  return inputs.sizes.num_v_heads * inputs.sizes.key_head_dim * inputs.sizes.value_head_dim;
}

Operand random_state(OpTest& test, const Inputs& inputs) {
  return test.normal(DType::kF32,
                     {static_cast<std::int64_t>(inputs.borders.size()) - 1, inputs.sizes.num_v_heads,
                      inputs.sizes.key_head_dim, inputs.sizes.value_head_dim},
                     0.1);
}

struct Results {
  Values out, state;
};

/// The recurrence, token after token.
Results define(const Inputs& inputs, const Values& initial_state) {
  const auto [num_k_heads, num_v_heads, key_dim, value_dim] = inputs.sizes;
  Results results = {Values(inputs.value.values.size()), initial_state};
  for (std::size_t n = 0; n + 1 < inputs.borders.size(); ++n) {
    for (std::int64_t head = 0; head < num_v_heads; ++head) {
      double* state = results.state.data() + (static_cast<std::int64_t>(n) * num_v_heads + head) * key_dim * value_dim;
      for (std::int64_t t = inputs.borders[n]; t < inputs.borders[n + 1]; ++t) {
        const std::int64_t key_row = (t * num_k_heads + head / (num_v_heads / num_k_heads)) * key_dim;
        const std::int64_t value_row = (t * num_v_heads + head) * value_dim;
        const double decay = std::exp(inputs.log_decay[t * num_v_heads + head]);
        const double beta = inputs.beta[t * num_v_heads + head];
        for (std::int64_t e = 0; e < value_dim; ++e) {
          double read = 0;
          for (std::int64_t d = 0; d < key_dim; ++d) {
            state[d * value_dim + e] *= decay;
            read += inputs.key[key_row + d] * state[d * value_dim + e];
          }
          const double write = beta * (inputs.value[value_row + e] - read);
          double out = 0;
          for (std::int64_t d = 0; d < key_dim; ++d) {
            state[d * value_dim + e] += inputs.key[key_row + d] * write;
            out += inputs.query[key_row + d] * state[d * value_dim + e];
          }
          results.out[static_cast<std::size_t>(value_row + e)] = inputs.scale * out;
        }
      }
    }
  }
  return results;
}

/// Runs tokens [begin, end), sequences [first, last) of the inputs. An empty state stands for zero.
TensorView run(OpTest& test, const Inputs& inputs, const TensorView& state, std::int32_t begin, std::int32_t end,
               const Lengths& borders) {
  const TensorView out = test.output(test.act(), {end - begin, inputs.sizes.num_v_heads, inputs.sizes.value_head_dim});
  test.ops().gated_delta_rule({
      .query = inputs.query.view.rows(begin, end),
      .key = inputs.key.view.rows(begin, end),
      .value = inputs.value.view.rows(begin, end),
      .out = out,
      .log_decay = inputs.log_decay.view.rows(begin, end),
      .beta = inputs.beta.view.rows(begin, end),
      .recurrent_state = state,
      .cu_seqlens = test.host_integers({static_cast<std::int64_t>(borders.size())}, borders),
      .scale = static_cast<float>(inputs.scale),
  });
  return out;
}

TensorView run(OpTest& test, const Inputs& inputs, const TensorView& state) {
  return run(test, inputs, state, 0, inputs.borders.back(), inputs.borders);
}

/// A result sums over the features of a key and over the tokens of a chunk, in turn. Where what is summed was rounded
/// to 16 bits before, that adds its share.
Tolerance tolerance_of(OpTest& test, const Inputs& inputs, DType dtype, double scale) {
  Tolerance allowed = tolerance(dtype, inputs.sizes.key_head_dim + 64, scale);
  allowed.absolute += test.operand_unit() * scale;
  return allowed;
}
Tolerance tolerance_of(OpTest& test, const Inputs& inputs) {
  return tolerance_of(test, inputs, test.act(), 0.1);
}
Tolerance state_tolerance(OpTest& test, const Inputs& inputs) {
  return tolerance_of(test, inputs, DType::kF32, 0.3);
}

void expect_definition(OpTest& test, const Inputs& inputs) {
  const Operand state = random_state(test, inputs);
  const TensorView out = run(test, inputs, state);
  const Results expected = define(inputs, state.values);
  test.expect(out, expected.out, tolerance_of(test, inputs));
  test.expect(state, expected.state, state_tolerance(test, inputs));
}

/// Norm of the difference over the norm of `expected`.
double relative_error(const Values& actual, const Values& expected) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(difference / norm);
}

}  // namespace

TEST_CASE("gated_delta_rule: follows the recurrence for one token, at chunk borders and with uneven tails") {
  for (const Backend& backend : backends()) {
    for (const std::int32_t length : {1, 2, 63, 64, 65, 127, 200}) {
      OpTest test("gated_delta_rule", backend, static_cast<std::uint32_t>(length));
      expect_definition(test, random_inputs(test, kSmall, {length}));
    }
  }
}

TEST_CASE("gated_delta_rule: any head sizes, any number of value heads per key head") {
  for (const Backend& backend : backends()) {
    for (const Sizes sizes : {Sizes{1, 1, 1, 1}, Sizes{2, 2, 5, 7}, Sizes{3, 3, 33, 16}, Sizes{1, 6, 8, 40}, kModel}) {
      OpTest test("gated_delta_rule", backend, 3);
      expect_definition(test, random_inputs(test, sizes, {130}));
    }
  }
}

TEST_CASE("gated_delta_rule: gives the worked example of the model's description") {
  // q[t,d] = f(4t+d, 1) and so on, with f(i, s) = ((37 i + 11 s) mod 101) / 50 - 1; five tokens, heads of 4 and 3.
  const auto f = [](std::int64_t count, int s) {
    Values values;
    for (int i = 0; i < count; ++i) values.push_back(((37 * i + 11 * s) % 101) / 50.0 - 1);
    return values;
  };
  for (const Backend& backend : backends()) {
    OpTest test("gated_delta_rule", backend, 0);
    if (test.act() != DType::kF32) continue;  // the example has no roundings
    const Inputs inputs = {
        .sizes = {1, 1, 4, 3},
        .borders = {0, 5},
        .query = test.with_values(test.act(), {5, 1, 4}, unit_rows(f(20, 1), 4)),
        .key = test.with_values(test.act(), {5, 1, 4}, unit_rows(f(20, 2), 4)),
        .value = test.with_values(test.act(), {5, 1, 3}, f(15, 3)),
        .log_decay =
            test.with_values(DType::kF32, {5, 1}, Values{-0.8658473, -1.4758742, -0.5577189, -1.008614, -1.6787635}),
        .beta = test.with_values(DType::kF32, {5, 1}, Values{0.5249792, 0.6984652, 0.391741, 0.5744425, 0.2728918}),
        .scale = 0.5,
    };
    const TensorView state = test.with_values(DType::kF32, {1, 1, 4, 3}, Values(12, 0.0));
    const TensorView out = run(test, inputs, state);
    const Tolerance printed_digits = {0, 3e-7};
    test.expect(out,
                Values{-0.083054, 0.0977106, -0.2149634, 0.0293861, -0.0948971, 0.1200792, 0.0141043, 0.1212634,
                       -0.0640928, 0.072276, 0.2405552, -0.0505223, -0.0034536, -0.0233542, 0.0058466},
                printed_digits);
    test.expect(state,
                Values{-0.0832564, 0.1577923, 0.0135884, 0.016021, 0.1055106, -0.0168125, 0.0597524, -0.1243973,
                       -0.0136739, -0.0585304, 0.1517765, -0.0041917},
                printed_digits);
  }
}

TEST_CASE("gated_delta_rule: a sequence gives the same output alone and inside a packed batch") {
  for (const Backend& backend : backends()) {
    for (const Lengths& lengths : {Lengths{70, 129}, Lengths{1, 64, 0, 7, 200, 65, 3}}) {
      OpTest test("gated_delta_rule", backend, 5);
      const Inputs inputs = random_inputs(test, kSmall, lengths);
      const Operand state = random_state(test, inputs);
      const TensorView out = run(test, inputs, state);
      const Results expected = define(inputs, state.values);
      test.expect(out, expected.out, tolerance_of(test, inputs));
      test.expect(state, expected.state, state_tolerance(test, inputs));

      for (std::size_t n = 0; n < lengths.size(); ++n) {
        const auto state_begin = state.values.begin() + static_cast<std::int64_t>(n) * state_size(inputs);
        const Operand own_state =
            test.with_values(DType::kF32, {1, kSmall.num_v_heads, kSmall.key_head_dim, kSmall.value_head_dim},
                             Values(state_begin, state_begin + state_size(inputs)));
        const TensorView alone =
            run(test, inputs, own_state, inputs.borders[n], inputs.borders[n + 1], {0, lengths[n]});
        const Tolerance same = {0, 0};
        if (lengths[n] > 0) test.expect(alone, test.read(out.rows(inputs.borders[n], inputs.borders[n + 1])), same);
        const auto row = static_cast<std::int64_t>(n);
        test.expect(own_state, test.read(state.view.rows(row, row + 1)), same);
      }
    }
  }
}

TEST_CASE("gated_delta_rule: the model's head sizes, packed, with and without a state, give what they give alone") {
  for (const Backend& backend : backends()) {
    const Lengths lengths = {70, 0, 1, 200};
    OpTest test("gated_delta_rule", backend, 7);
    const Inputs inputs = random_inputs(test, {1, 2, 128, 128}, lengths);
    const Operand state = random_state(test, inputs);
    const TensorView out = run(test, inputs, state);
    const Results expected = define(inputs, state.values);
    test.expect(out, expected.out, tolerance_of(test, inputs));
    test.expect(state, expected.state, state_tolerance(test, inputs));
    const Results from_zero = define(inputs, Values(expected.state.size()));
    const TensorView without = run(test, inputs, {});
    test.expect(without, from_zero.out, tolerance_of(test, inputs));
    const TensorView alone = run(test, inputs, {}, 71, 271, {0, 200});
    test.expect(alone, test.read(without.rows(71, 271)), {0, 0});
  }
}

TEST_CASE("gated_delta_rule: the model's head sizes with decays so strong that they vanish") {
  for (const Backend& backend : backends()) {
    OpTest test("gated_delta_rule", backend, 8);
    Inputs inputs = random_inputs(test, {1, 1, 128, 64}, {150});
    Values log_decay = inputs.log_decay.values;
    for (std::size_t i = 0; i < log_decay.size(); ++i) log_decay[i] -= i % 64 < 30 ? 500 : 0;
    inputs.log_decay = test.with_values(DType::kF32, {150, 1}, log_decay);
    expect_definition(test, inputs);
  }
}

TEST_CASE("gated_delta_rule: a sequence cut in two calls equals one call") {
  for (const Backend& backend : backends()) {
    for (const std::int32_t cut : {1, 64, 100, 128, 199}) {
      OpTest test("gated_delta_rule", backend, 11);
      const Inputs inputs = random_inputs(test, kSmall, {200});
      const Operand state = random_state(test, inputs);
      const Results expected = define(inputs, state.values);
      const TensorView first = run(test, inputs, state, 0, cut, {0, cut});
      const TensorView second = run(test, inputs, state, cut, 200, {0, 200 - cut});
      Values out = test.read(first);
      const Values rest = test.read(second);
      out.insert(out.end(), rest.begin(), rest.end());
      test.expect(test.with_values(test.act(), {200, kSmall.num_v_heads, kSmall.value_head_dim}, out), expected.out,
                  tolerance_of(test, inputs));
      test.expect(state, expected.state, state_tolerance(test, inputs));
    }
  }
}

TEST_CASE("gated_delta_rule: without a state it starts from zero") {
  for (const Backend& backend : backends()) {
    OpTest test("gated_delta_rule", backend, 13);
    const Inputs inputs = random_inputs(test, kSmall, {70, 30});
    const Results expected = define(inputs, Values(static_cast<std::size_t>(2 * state_size(inputs))));
    test.expect(run(test, inputs, {}), expected.out, tolerance_of(test, inputs));
  }
}

TEST_CASE("gated_delta_rule: decays so strong that they vanish, none at all, and both in one chunk") {
  for (const Backend& backend : backends()) {
    for (const double log_decay : {-50.0, -1e4, 0.0}) {
      OpTest test("gated_delta_rule", backend, 17);
      Inputs inputs = random_inputs(test, kSmall, {150});
      inputs.log_decay = test.with_values(DType::kF32, {150, kSmall.num_v_heads},
                                          Values(static_cast<std::size_t>(150 * kSmall.num_v_heads), log_decay));
      expect_definition(test, inputs);
    }
    // Weak decays after strong ones are small differences of large sums.
    OpTest test("gated_delta_rule", backend, 19);
    Inputs inputs = random_inputs(test, kSmall, {150});
    Values log_decay = inputs.log_decay.values;
    for (std::size_t i = 0; i < log_decay.size(); ++i) {
      if (i / static_cast<std::size_t>(kSmall.num_v_heads) % 64 < 30) log_decay[i] -= 500;
    }
    inputs.log_decay = test.with_values(DType::kF32, {150, kSmall.num_v_heads}, log_decay);
    expect_definition(test, inputs);
  }
}

TEST_CASE("gated_delta_rule: equal keys with beta near 1, where the system of a chunk is stiff") {
  for (const Backend& backend : backends()) {
    OpTest test("gated_delta_rule", backend, 23);
    Inputs inputs = random_inputs(test, {1, 1, 128, 128}, {190}, -0.001);
    Values keys = inputs.key.values;
    for (std::size_t i = 128; i < keys.size(); ++i) keys[i] = keys[i - 128];
    inputs.key = test.with_values(test.act(), {190, 1, 128}, keys);
    inputs.beta = test.with_values(DType::kF32, {190, 1}, Values(190, 0.999));
    if (test.operand_unit() == 0) {
      expect_definition(test, inputs);
      continue;
    }
    // Rounded operands: what one token writes, the next takes back but for their roundings. Half as operand type leaves
    // 0.0025 of the results; a wrong sign or mask anywhere leaves more than 0.1.
    const Operand state = random_state(test, inputs);
    const Values out = test.read(run(test, inputs, state));
    const Results expected = define(inputs, state.values);
    CHECK(relative_error(out, expected.out) < 0.005);
    CHECK(relative_error(test.read(state), expected.state) < 0.005);
  }
}

TEST_CASE("gated_delta_rule: over 4,000 tokens fp32 stays within 2e-5 of the definition") {
  for (const Backend& backend : backends()) {
    OpTest test("gated_delta_rule", backend, 29);
    if (test.act() != DType::kF32) continue;
    for (const double lowest_log_decay : {-0.01, -1.0}) {
      const Inputs inputs = random_inputs(test, {1, 2, 64, 32}, {4000}, lowest_log_decay);
      const Operand state = random_state(test, inputs);
      const TensorView out = run(test, inputs, state);
      const Results expected = define(inputs, state.values);
      CHECK(relative_error(test.read(out), expected.out) < 2e-5);
      CHECK(relative_error(test.read(state), expected.state) < 2e-5);
    }
  }
}

TEST_CASE("gated_delta_rule: no tokens, no work") {
  for (const Backend& backend : backends()) {
    OpTest test("gated_delta_rule", backend, 31);
    const Inputs inputs = random_inputs(test, kSmall, {0});
    const Operand state = random_state(test, inputs);
    run(test, inputs, state);
    test.expect(state, state.values, {0, 0});
  }
}
