#include <doctest/doctest.h>
#include <treble/error.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/testing/op_test.h"
#include "tensor/bfloat16.h"

using namespace treble;
using namespace treble::testing;

namespace {

using Values = std::vector<double>;
using Lengths = std::vector<std::int32_t>;

struct Heads {
  std::int64_t num_q_heads, num_kv_heads, head_dim;
};

struct Inputs {
  Heads heads;
  Lengths q_borders, k_borders;
  Operand query, key, value, gate;
  bool causal = true;
  double scale;
};

Lengths borders_of(const Lengths& lengths) {
  Lengths borders = {0};
  for (const std::int32_t length : lengths) borders.push_back(borders.back() + length);
  return borders;
}

/// Random operands without a gate. Scores have a spread of about `spread`.
Inputs random_inputs(OpTest& test, DType dtype, Heads heads, const Lengths& queries, const Lengths& keys,
                     double spread = 2) {
  const Lengths q_borders = borders_of(queries), k_borders = borders_of(keys);
  return {.heads = heads,
          .q_borders = q_borders,
          .k_borders = k_borders,
          .query = test.normal(dtype, {q_borders.back(), heads.num_q_heads, heads.head_dim}),
          .key = test.normal(dtype, {k_borders.back(), heads.num_kv_heads, heads.head_dim}),
          .value = test.normal(dtype, {k_borders.back(), heads.num_kv_heads, heads.head_dim}),
          .gate = {},
          .scale = spread / std::sqrt(static_cast<double>(heads.head_dim))};
}

void add_gate(OpTest& test, Inputs& inputs) {
  inputs.gate = test.normal(inputs.query.view.dtype(),
                            {inputs.q_borders.back(), inputs.heads.num_q_heads, inputs.heads.head_dim}, 2);
}

TensorView run(OpTest& test, const Inputs& inputs) {
  const TensorView out = test.output(inputs.query.view.dtype(),
                                     {inputs.q_borders.back(), inputs.heads.num_q_heads * inputs.heads.head_dim});
  test.ops().attention({
      .query = inputs.query,
      .key = inputs.key,
      .value = inputs.value,
      .gate = inputs.gate,
      .cu_seqlens_q = test.host_integers({static_cast<std::int64_t>(inputs.q_borders.size())}, inputs.q_borders),
      .cu_seqlens_k = test.host_integers({static_cast<std::int64_t>(inputs.k_borders.size())}, inputs.k_borders),
      .causal = inputs.causal,
      .scale = static_cast<float>(inputs.scale),
      .out = out,
  });
  return out;
}

double round_to(DType dtype, double x) {
  return dtype == DType::kBF16 ? static_cast<double>(to_float(to_bfloat16(static_cast<float>(x)))) : x;
}

Values define(const Inputs& inputs) {
  const auto [num_q_heads, num_kv_heads, head_dim] = inputs.heads;
  const DType dtype = inputs.query.view.dtype();
  Values out;
  for (std::size_t n = 0; n + 1 < inputs.q_borders.size(); ++n) {
    const std::int64_t q_begin = inputs.q_borders[n], q_end = inputs.q_borders[n + 1];
    const std::int64_t k_begin = inputs.k_borders[n], k_end = inputs.k_borders[n + 1];
    for (std::int64_t i = q_begin; i < q_end; ++i) {
      for (std::int64_t head = 0; head < num_q_heads; ++head) {
        const std::int64_t q_row = (i * num_q_heads + head) * head_dim;
        const auto k_row = [&](std::int64_t j) {
          return (j * num_kv_heads + head / (num_q_heads / num_kv_heads)) * head_dim;
        };
        Values weights;
        for (std::int64_t j = k_begin; j < (inputs.causal ? k_end - (q_end - 1 - i) : k_end); ++j) {
          double score = 0;
          for (std::int64_t d = 0; d < head_dim; ++d) score += inputs.query[q_row + d] * inputs.key[k_row(j) + d];
          weights.push_back(inputs.scale * score);
        }
        const double highest = *std::max_element(weights.begin(), weights.end());
        double total = 0;
        for (double& weight : weights) total += weight = std::exp(weight - highest);
        Values row(static_cast<std::size_t>(head_dim));
        for (std::size_t j = 0; j < weights.size(); ++j) {
          for (std::int64_t d = 0; d < head_dim; ++d)
            row[static_cast<std::size_t>(d)] +=
                weights[j] / total * inputs.value[k_row(k_begin + static_cast<std::int64_t>(j)) + d];
        }
        for (std::int64_t d = 0; d < head_dim; ++d) {
          double x = row[static_cast<std::size_t>(d)];
          if (inputs.gate.view) x = round_to(dtype, x) * round_to(dtype, 1 / (1 + std::exp(-inputs.gate[q_row + d])));
          out.push_back(x);
        }
      }
    }
  }
  return out;
}

/// A score sums over head_dim terms and weights enter as exp(score): its absolute error is the result's relative one.
/// Where weights are rounded before they meet the values, of about 1 and seldom above 2, that adds its share.
Tolerance tolerance_of(OpTest& test, const Inputs& inputs) {
  const DType dtype = inputs.query.view.dtype();
  Tolerance allowed = tolerance(dtype, inputs.heads.head_dim, 1, inputs.gate.view ? 3 : 1);
  if (dtype == DType::kBF16) allowed.absolute += 2 * test.operand_unit();
  return allowed;
}

void expect_definition(OpTest& test, const Inputs& inputs) {
  test.expect(run(test, inputs), define(inputs), tolerance_of(test, inputs));
}

}  // namespace

TEST_CASE("attention: causal, for one token, at block borders and with uneven tails") {
  for (const Backend& backend : backends()) {
    for (const std::int32_t length : {1, 2, 31, 32, 33, 63, 64, 65, 95, 96, 97, 127, 200, 400}) {
      OpTest test("attention", backend, static_cast<std::uint32_t>(length));
      expect_definition(test, random_inputs(test, test.act(), {4, 2, 64}, {length}, {length}));
    }
  }
}

TEST_CASE("attention: any number of query heads per kv head") {
  for (const Backend& backend : backends()) {
    for (const Heads heads : {Heads{2, 2, 32}, Heads{4, 2, 32}, Heads{3, 1, 32}, Heads{12, 2, 32}, Heads{50, 1, 32}}) {
      OpTest test("attention", backend, 1);
      expect_definition(test, random_inputs(test, test.act(), heads, {150}, {150}));
    }
  }
}

TEST_CASE("attention: any head size") {
  for (const Backend& backend : backends()) {
    for (const std::int64_t head_dim : {1, 3, 13, 64, 72, 256, 1024}) {
      OpTest test("attention", backend, static_cast<std::uint32_t>(head_dim));
      expect_definition(test, random_inputs(test, test.act(), {2, 1, head_dim}, {110}, {110}));
    }
  }
}

TEST_CASE("attention: the gate multiplies the result by its sigmoid") {
  for (const Backend& backend : backends()) {
    OpTest test("attention", backend, 2);
    Inputs inputs = random_inputs(test, test.act(), {6, 2, 72}, {130}, {130});
    add_gate(test, inputs);
    expect_definition(test, inputs);
  }
}

TEST_CASE("attention: not causal, every query reads every key of its sequence and no other") {
  for (const Backend& backend : backends()) {
    OpTest test("attention", backend, 3);
    Inputs inputs = random_inputs(test, test.act(), {2, 2, 64}, {5, 1, 130}, {300, 7, 20});
    inputs.causal = false;
    expect_definition(test, inputs);
  }
}

TEST_CASE("attention: whole heads of the vision tower, side by side in one projection, inside frame groups") {
  for (const Backend& backend : backends()) {
    for (const std::int64_t head_dim : {48, 64, 72}) {
      OpTest test("attention", backend, 10);
      Inputs inputs = random_inputs(test, test.act(), {2, 2, head_dim}, {4, 24, 24, 200}, {4, 24, 24, 200});
      inputs.causal = false;
      Values projection;  // a row: query, key, value of all heads
      for (std::int64_t row = 0; row < inputs.q_borders.back(); ++row) {
        for (const Operand* operand : {&inputs.query, &inputs.key, &inputs.value})
          for (std::int64_t i = 0; i < 2 * head_dim; ++i) projection.push_back((*operand)[row * 2 * head_dim + i]);
      }
      const Operand qkv = test.with_values(test.act(), {inputs.q_borders.back(), 6, head_dim}, projection);
      inputs.query.view = qkv.view.slice(1, 0, 2);
      inputs.key.view = qkv.view.slice(1, 2, 4);
      inputs.value.view = qkv.view.slice(1, 4, 6);
      expect_definition(test, inputs);
    }
  }
}

TEST_CASE("attention: few queries of many keys, as the decision head asks") {
  for (const Backend& backend : backends()) {
    for (const std::int32_t num_keys : {1, 95, 96, 97, 193, 2000}) {
      OpTest test("attention", backend, 4);
      Inputs inputs = random_inputs(test, DType::kF32, {1, 1, 1024}, {3}, {num_keys});
      inputs.causal = false;
      add_gate(test, inputs);
      expect_definition(test, inputs);
    }
  }
}

TEST_CASE("attention: few fp32 queries give the same alone and packed, to the digit where the backend says so") {
  for (const Backend& backend : backends()) {
    for (const std::int64_t head_dim : {64, 24, 13}) {
      OpTest test("attention", backend, 11);
      const Lengths queries = {3, 17, 0, 1, 9}, keys = {64, 2100, 5, 65, 9};
      Inputs inputs = random_inputs(test, DType::kF32, {2, 1, head_dim}, queries, keys);
      inputs.causal = false;
      const TensorView out = run(test, inputs);
      test.expect(out, define(inputs), tolerance_of(test, inputs));
      const Tolerance close = backend.is_batch_invariant ? Tolerance{0, 0} : tolerance_of(test, inputs);
      for (std::size_t n = 0; n < queries.size(); ++n) {
        if (queries[n] == 0) continue;
        Inputs alone = inputs;
        alone.q_borders = {0, queries[n]};
        alone.k_borders = {0, keys[n]};
        alone.query.view = inputs.query.view.rows(inputs.q_borders[n], inputs.q_borders[n + 1]);
        alone.key.view = inputs.key.view.rows(inputs.k_borders[n], inputs.k_borders[n + 1]);
        alone.value.view = inputs.value.view.rows(inputs.k_borders[n], inputs.k_borders[n + 1]);
        test.expect(run(test, alone), test.read(out.rows(inputs.q_borders[n], inputs.q_borders[n + 1])), close);
      }
    }
  }
}

TEST_CASE("attention: queries are the last rows of their sequence") {
  for (const Backend& backend : backends()) {
    for (const std::int32_t num_queries : {1, 5, 64, 130}) {
      OpTest test("attention", backend, 5);
      expect_definition(test, random_inputs(test, test.act(), {4, 1, 40}, {num_queries}, {num_queries + 150}));
    }
  }
}

TEST_CASE("attention: a sequence read in pieces, over the keys kept so far, equals one call") {
  for (const Backend& backend : backends()) {
    for (const Heads heads : {Heads{4, 2, 256}, Heads{3, 1, 40}}) {
      OpTest test("attention", backend, 12);
      constexpr std::int32_t kTokens = 330;
      Inputs inputs = random_inputs(test, test.act(), heads, {kTokens}, {kTokens});
      add_gate(test, inputs);
      const TensorView whole = run(test, inputs);
      test.expect(whole, define(inputs), tolerance_of(test, inputs));
      const Tolerance close = backend.is_batch_invariant ? Tolerance{0, 0} : tolerance_of(test, inputs);
      // Keys and values lie side by side in rows of which later ones are not written yet.
      const std::int64_t kv_heads = heads.num_kv_heads;
      const TensorView kept = test.output(test.act(), {kTokens + 64, 2 * kv_heads * heads.head_dim});
      std::int32_t begin = 0;
      for (const std::int32_t end : {64, 256, kTokens}) {
        std::vector<std::int32_t> rows;
        for (std::int32_t row = begin; row < end; ++row) rows.push_back(row);
        const TensorView index = test.host_integers({end - begin}, rows);
        const std::int64_t width = kv_heads * heads.head_dim;
        const auto keep = [&](const TensorView& from, std::int64_t first) {
          test.ops().scatter_rows({.rows = from.rows(begin, end).reshape({end - begin, width}),
                                   .index = index,
                                   .x = kept.slice(1, first, first + width)});
        };
        keep(inputs.key.view, 0);
        keep(inputs.value.view, width);
        Inputs piece = inputs;
        piece.q_borders = {0, end - begin};
        piece.k_borders = {0, end};
        piece.query.view = inputs.query.view.rows(begin, end);
        piece.gate.view = inputs.gate.view.rows(begin, end);
        const TensorView known = kept.rows(0, end).reshape({end, 2 * kv_heads, heads.head_dim});
        piece.key.view = known.slice(1, 0, kv_heads);
        piece.value.view = known.slice(1, kv_heads, 2 * kv_heads);
        test.expect(run(test, piece), test.read(whole.rows(begin, end)), close);
        begin = end;
      }
    }
  }
}

TEST_CASE("attention: packed sequences, also empty ones, give what they give alone") {
  for (const Backend& backend : backends()) {
    const Lengths lengths = {70, 0, 129, 1, 33, 200, 2};
    OpTest test("attention", backend, 6);
    const Inputs inputs = random_inputs(test, test.act(), {4, 2, 64}, lengths, lengths);
    const TensorView out = run(test, inputs);
    test.expect(out, define(inputs), tolerance_of(test, inputs));
    for (std::size_t n = 0; n < lengths.size(); ++n) {
      const std::int64_t begin = inputs.q_borders[n], end = inputs.q_borders[n + 1];
      if (begin == end) continue;
      Inputs alone = inputs;
      alone.q_borders = alone.k_borders = {0, lengths[n]};
      alone.query.view = inputs.query.view.rows(begin, end);
      alone.key.view = inputs.key.view.rows(begin, end);
      alone.value.view = inputs.value.view.rows(begin, end);
      test.expect(run(test, alone), test.read(out.rows(begin, end)), {0, 0});
    }
  }
}

TEST_CASE("attention: reads operands that lie side by side in wider rows") {
  for (const Backend& backend : backends()) {
    OpTest test("attention", backend, 7);
    Inputs inputs = random_inputs(test, test.act(), {4, 2, 24}, {100}, {100});
    add_gate(test, inputs);
    const TensorView packed = run(test, inputs);
    // Each head's query and gate are neighbours, as are a token's keys and values.
    Values query_gate, key_value;
    for (std::int64_t row = 0; row < 100 * 4; ++row) {
      for (std::int64_t d = 0; d < 24; ++d) query_gate.push_back(inputs.query[row * 24 + d]);
      for (std::int64_t d = 0; d < 24; ++d) query_gate.push_back(inputs.gate[row * 24 + d]);
    }
    for (std::int64_t row = 0; row < 100; ++row) {
      for (std::int64_t d = 0; d < 48; ++d) key_value.push_back(inputs.key[row * 48 + d]);
      for (std::int64_t d = 0; d < 48; ++d) key_value.push_back(inputs.value[row * 48 + d]);
    }
    const Operand queries = test.with_values(test.act(), {100, 4, 48}, query_gate);
    const Operand keys = test.with_values(test.act(), {100, 4, 24}, key_value);
    inputs.query.view = queries.view.slice(2, 0, 24);
    inputs.gate.view = queries.view.slice(2, 24, 48);
    inputs.key.view = keys.view.slice(1, 0, 2);
    inputs.value.view = keys.view.slice(1, 2, 4);
    test.expect(run(test, inputs), test.read(packed), {0, 0});
  }
}

TEST_CASE("attention: scores far apart neither overflow nor vanish") {
  for (const Backend& backend : backends()) {
    for (const double spread : {0.0, 300.0}) {
      OpTest test("attention", backend, 8);
      Inputs inputs = random_inputs(test, test.act(), {2, 1, 16}, {300}, {300}, spread);
      // Products of equal magnitudes: scores are sums of a few integers, exact in fp32.
      for (Operand* operand : {&inputs.query, &inputs.key}) {
        for (double& x : operand->values) x = x < 0 ? -1 : 1;
        *operand = test.with_values(test.act(), {300, operand->view.size(1), 16}, operand->values);
      }
      expect_definition(test, inputs);
    }
  }
}

TEST_CASE("attention: a query without a key is refused") {
  for (const Backend& backend : backends()) {
    OpTest test("attention", backend, 9);
    Inputs inputs = random_inputs(test, test.act(), {1, 1, 8}, {3, 2}, {2, 3});
    CHECK_THROWS_AS(run(test, inputs), Error);
    inputs.k_borders = {0, 5, 5};
    inputs.causal = false;
    CHECK_THROWS_AS(run(test, inputs), Error);
  }
}
