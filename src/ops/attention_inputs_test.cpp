#include <doctest/doctest.h>

#include <cmath>

#include "ops/testing/op_test.h"

using namespace treble;
using namespace treble::testing;

namespace {

constexpr float kEps = 1e-6f;

/// What becomes of one operand of [T, num_heads, head_dim].
std::vector<double> normed_and_rotated(DType act, const std::vector<double>& x, std::int64_t num_heads,
                                       const Operand& norm, const Operand& cos, const Operand& sin) {
  const std::int64_t head_dim = std::ssize(norm.values), half = cos.view.size(1);
  std::vector<double> out(x.size());
  for (std::int64_t head = 0; head < std::ssize(x) / head_dim; ++head) {
    const std::int64_t t = head / num_heads;
    const double* from = x.data() + head * head_dim;
    double* to = out.data() + head * head_dim;
    double squares = 0;
    for (std::int64_t i = 0; i < head_dim; ++i) squares += from[i] * from[i];
    const double normalise = 1 / std::sqrt(squares / static_cast<double>(head_dim) + static_cast<double>(kEps));
    for (std::int64_t i = 0; i < head_dim; ++i) to[i] = rounded(act, from[i] * normalise * (1 + norm[i]));
    for (std::int64_t i = 0; i < half; ++i) {
      const double a = to[i], b = to[half + i], c = cos[t * half + i], s = sin[t * half + i];
      to[i] = rounded(act, rounded(act, a * c) - rounded(act, b * s));
      to[half + i] = rounded(act, rounded(act, b * c) + rounded(act, a * s));
    }
  }
  return out;
}

}  // namespace

TEST_CASE("attention_inputs: query and key are normed head by head, then rotated, where they lie") {
  struct Case {
    std::int64_t total_tokens, num_q_heads, num_kv_heads, head_dim, half;
  };
  for (const Backend& backend : backends()) {
    OpTest test("attention_inputs", backend, 31);
    for (const auto& [total_tokens, num_q_heads, num_kv_heads, head_dim, half] :
         {Case{1, 1, 1, 8, 4}, Case{5, 3, 1, 44, 7}, Case{40, 4, 2, 256, 32}}) {
      // The query lies between its gates, as its projection writes it.
      const Operand query_and_gate = test.normal(test.act(), {total_tokens, num_q_heads, 2 * head_dim});
      const TensorView query = query_and_gate.view.slice(2, 0, head_dim);
      const TensorView gate = query_and_gate.view.slice(2, head_dim, 2 * head_dim);
      const std::vector<double> query_before = test.read(query), gate_before = test.read(gate);
      const Operand key = test.normal(test.act(), {total_tokens, num_kv_heads, head_dim});
      const Operand q_norm = test.normal(DType::kBF16, {head_dim}, 0.3),
                    k_norm = test.normal(DType::kBF16, {head_dim}, 0.3);
      const Operand cos = test.uniform(test.act(), {total_tokens, half}, -1, 1);
      const Operand sin = test.uniform(test.act(), {total_tokens, half}, -1, 1);
      test.ops().attention_inputs(
          {.query = query, .key = key, .q_norm = q_norm, .k_norm = k_norm, .cos = cos, .sin = sin, .eps = kEps});

      const auto expected_query = normed_and_rotated(test.act(), query_before, num_q_heads, q_norm, cos, sin);
      const auto expected_key = normed_and_rotated(test.act(), key.values, num_kv_heads, k_norm, cos, sin);
      const Tolerance close = tolerance(test.act(), 1, 3, 2);
      test.expect(query, expected_query, close);
      test.expect(key, expected_key, close);
      test.expect(gate, gate_before, {0, 0});
      if (test.act() == DType::kBF16 && total_tokens > 1) test.expect_rounded(query, expected_query);
    }
  }
}
