#include <doctest/doctest.h>
#include <treble/error.h>

#include "ops/testing/op_test.h"

using namespace treble;
using namespace treble::testing;

TEST_CASE("embedding: each token gets its row of the table, exactly") {
  for (const Backend& backend : backends()) {
    OpTest test("embedding", backend, 11);
    const Operand table = test.normal(DType::kBF16, {9, 37});
    for (const std::int32_t num_tokens : {1, 70}) {
      std::vector<std::int32_t> ids;
      std::vector<double> expected;
      for (std::int32_t t = 0; t < num_tokens; ++t) {
        ids.push_back((t * 5 + 8) % 9);
        for (std::int64_t i = 0; i < 37; ++i) expected.push_back(table[ids.back() * 37 + i]);
      }
      const TensorView out = test.output(test.act(), {num_tokens, 37});
      test.ops().embedding({.ids = test.integers({num_tokens}, ids), .table = table, .out = out});
      test.expect(out, expected, {0, 0});
    }
  }
}

TEST_CASE("embedding: an id outside the vocabulary is an error, not a read past the table") {
  for (const Backend& backend : backends()) {
    if (!backend.name.starts_with("cpu")) continue;  // a device cannot throw
    OpTest test("embedding", backend, 12);
    const Operand table = test.normal(DType::kBF16, {9, 4});
    const TensorView out = test.output(test.act(), {2, 4});
    for (const std::int32_t id : {-1, 9}) {
      const std::vector<std::int32_t> ids = {0, id};
      CHECK_THROWS_AS(test.ops().embedding({.ids = test.integers({2}, ids), .table = table, .out = out}), Error);
    }
  }
}
