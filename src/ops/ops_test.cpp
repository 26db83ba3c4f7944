#include "ops/ops.h"

#include <doctest/doctest.h>
#include <treble/error.h>

#include <string>

#include "ops/testing/op_test.h"

using namespace treble;
using namespace treble::testing;

namespace {

/// The message of the internal Error that `call` throws, "" when it throws none.
template <typename Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInternal);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("ops: an operand of another shape or dtype is named, with what it is and what was expected") {
  OpTest test("ops", backends().front(), 1);
  REQUIRE(test.act() == DType::kF32);
  const TensorView x = test.output(DType::kF32, {3, 8}), weight = test.normal(DType::kBF16, {8});
  const TensorView narrow = test.output(DType::kF32, {3, 7}), halves = test.output(DType::kBF16, {3, 8});

  CHECK(message_of([&] { test.ops().rms_norm({.x = x, .weight = weight, .eps = 1e-6f, .out = narrow}); }) ==
        "ops: rms_norm: out is [3, 7] f32, expected [3, 8] f32");
  CHECK(message_of([&] { test.ops().rms_norm({.x = x, .weight = weight, .eps = 1e-6f, .out = halves}); }) ==
        "ops: rms_norm: out is [3, 8] bf16, expected [3, 8] f32");
  CHECK(message_of([&] { test.ops().rms_norm({.x = x, .weight = weight, .eps = 1e-6f, .out = TensorView()}); }) ==
        "ops: rms_norm: out is [] f32, expected [3, 8] f32");
  CHECK(message_of([&] { test.ops().rms_norm({.x = x, .weight = x, .eps = 1e-6f, .out = x}); }) ==
        "ops: rms_norm: weight is [3, 8] f32, expected [3] bf16");
}

TEST_CASE("ops: an index, span or sequence border outside its tensor is an error, not a read past the end") {
  OpTest test("ops", backends().front(), 2);
  const TensorView rows = test.normal(DType::kF32, {4, 8}), out = test.output(DType::kF32, {1, 8});
  const auto mean_over = [&](std::int32_t begin, std::int32_t end, std::int32_t last_index) {
    const std::vector<std::int32_t> index = {0, 1, last_index}, span = {begin, end};
    return message_of([&] {
      test.ops().span_mean({.rows = rows,
                            .index = test.host_integers({3}, index),
                            .spans = test.host_integers({1, 2}, span),
                            .out = out});
    });
  };
  CHECK(mean_over(0, 3, 3) == "");
  CHECK(mean_over(0, 3, 4) == "ops: span_mean: index[2] is 4, expected 0 to 3");
  CHECK(mean_over(0, 4, 3) == "ops: span_mean: span 0 is [0, 4) of 3 positions");
  CHECK(mean_over(1, 1, 3) == "ops: span_mean: span 0 is [1, 1) of 3 positions");
  CHECK(mean_over(-1, 1, 3) == "ops: span_mean: span 0 is [-1, 1) of 3 positions");

  const TensorView heads = test.normal(DType::kF32, {5, 1, 8}), context = test.output(DType::kF32, {5, 8});
  const auto attention_over = [&](const std::vector<std::int32_t>& borders) {
    const TensorView cu_seqlens = test.host_integers({static_cast<std::int64_t>(borders.size())}, borders);
    return message_of([&] {
      test.ops().attention({.query = heads,
                            .key = heads,
                            .value = heads,
                            .gate = {},
                            .cu_seqlens_q = cu_seqlens,
                            .cu_seqlens_k = cu_seqlens,
                            .causal = true,
                            .scale = 1,
                            .out = context});
    });
  };
  CHECK(attention_over({0, 2, 5}) == "");
  CHECK(attention_over({0, 2, 6}) == "ops: attention: cu_seqlens_q runs from 0 to 6, expected 0 to 5");
  CHECK(attention_over({0, 4, 3, 5}) == "ops: attention: cu_seqlens_q falls after sequence 1");
}

TEST_CASE("linear_input: memory of one row a token in the activation dtype, for Linears of one width") {
  for (const Backend& backend : backends()) {
    OpTest test("linear_input", backend, 3);
    const LinearWeight narrow{.weight = test.normal(DType::kBF16, {2, 8}), .bias = {}};
    const LinearWeight wide{.weight = test.normal(DType::kBF16, {2, 9}), .bias = {}};
    Workspace workspace(test.ops().memory());
    const LinearInput input = test.ops().linear_input(workspace, 5, {&narrow, &narrow});
    CHECK(input.plain.describe() == TensorView(nullptr, test.act(), {5, 8}).describe());
    CHECK(message_of([&] {
            test.ops().linear_input(workspace, 5, {&narrow, &wide});
          }) == "ops: linear_input: its Linears differ in in_features");
  }
}
