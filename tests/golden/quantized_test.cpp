// Quantised releases against the values of the original stack (tests/data/README.md).

#include <doctest/doctest.h>

#include <algorithm>

#include "quantized.h"

namespace treble::testing {
namespace {

// fp32 sums in another order, as for bf16 weights: the codes stand for the same numbers everywhere.
constexpr double kLogitTolerance = 5e-5;
constexpr double kHiddenTolerance = 2e-5;  // relative L2

// Twice the noise between the original's bf16 and fp32 runs.
constexpr double kBf16LogitTolerance = 0.07;

Pipeline open_quantized(const Fixture& fixture, Precision precision, WeightConversion tower,
                        Int8Activations int8_activations = Int8Activations::kPrecise) {
  std::unique_ptr<Ops> ops = make_ops("cpu", precision, int8_activations);
  Model model = load_quantized(fixture, *ops, tower);
  return Pipeline(std::move(ops), std::move(model), 0);
}

/// The largest error of a logit in all requests. Each request's logits go to look(got, expected) too.
template <typename Look>
double largest_logit_error(const Fixture& fixture, Pipeline& pipeline, std::string_view run, const Look& look) {
  const Tokenizer tokenizer(fixture.release());
  double largest = 0;
  for (const FixtureCase& fixture_case : fixture.cases()) {
    CAPTURE(fixture_case.name);
    const EncodedRecord record = encode(fixture_case, tokenizer);
    const Logits logits = pipeline.run(std::span(&record, 1));
    const auto expected = fixture.logits(fixture_case, run);
    largest = std::max(largest, largest_difference(logits[0], expected));
    look(logits[0], expected);
  }
  MESSAGE("largest error of a logit: ", largest);
  return largest;
}

double largest_logit_error(const Fixture& fixture, Pipeline& pipeline, std::string_view run) {
  return largest_logit_error(fixture, pipeline, run, [](const auto&, const auto&) {});
}

/// Calls check(got) with the hidden states [T, h] of card_example.
template <typename Check>
void check_hidden(const Fixture& fixture, const Check& check) {
  const std::unique_ptr<Ops> ops = make_ops("cpu", Precision::kF32);
  const Model model = load_model(fixture.release(), *ops);
  const EncodedRecord record = encode(fixture.find("card_example"), Tokenizer(fixture.release()));
  Workspace workspace(ops->memory());
  const Workspace::Scope scope(workspace);
  check(run_record(model, record, *ops, workspace));
}

TEST_CASE("golden: logits of an NF4 release are the original stack's") {
  const Fixture fixture("micro-nf4");
  Pipeline pipeline = open_quantized(fixture, Precision::kF32, WeightConversion::kNf4);
  CHECK(largest_logit_error(fixture, pipeline, "fp32") < kLogitTolerance);
}

TEST_CASE("golden: hidden states of an NF4 release are the original stack's") {
  const Fixture fixture("micro-nf4");
  check_hidden(fixture, [&](const TensorView& hidden) {
    CHECK(relative_l2(hidden, fixture.tensor("card_example.hidden"), kTraceRowStep) < kHiddenTolerance);
  });
}

TEST_CASE("golden: an NF4 release with bf16 activations stays within twice the original's own bf16 noise") {
  const Fixture fixture("micro-nf4");
  Pipeline pipeline = open_quantized(fixture, Precision::kBf16, WeightConversion::kNf4);
  CHECK(largest_logit_error(fixture, pipeline, "fp32") < kBf16LogitTolerance);
}

constexpr double kInt8HiddenTolerance = 4e-2;  // relative L2
// Rows that no flip has reached are fp32 sums in another order.
constexpr double kInt8FirstRowTolerance = 1e-5;  // relative L2

TEST_CASE("golden: an INT8 release gives the precise run's decisions, and its logits but for what flipped codes do") {
  const Fixture fixture("micro-int8");
  Pipeline pipeline = open_quantized(fixture, Precision::kF32, WeightConversion::kNone);
  const double largest =
      largest_logit_error(fixture, pipeline, "precise", [](const auto& logits, const auto& expected) {
        for (std::size_t q = 0; q < expected.size(); ++q) CHECK(is_same_decision(logits[q], expected[q]));
      });
  CHECK(largest < kInt8LogitTolerance);
}

TEST_CASE("golden: hidden states of an INT8 release are the precise run's, the first rows closely") {
  const Fixture fixture("micro-int8");
  check_hidden(fixture, [&](const TensorView& hidden) {
    const double whole = relative_l2(hidden, fixture.tensor("card_example.hidden"), kTraceRowStep);
    MESSAGE("relative L2 of the hidden states: ", whole);
    CHECK(whole < kInt8HiddenTolerance);
    CHECK(relative_l2(hidden, fixture.tensor("card_example.first_hidden")) < kInt8FirstRowTolerance);
  });
}

TEST_CASE("golden: an INT8 release with bf16 activations in comfy-fallback mode gives Comfy's own answers") {
  const Fixture fixture("micro-int8");
  Pipeline pipeline =
      open_quantized(fixture, Precision::kBf16, WeightConversion::kNone, Int8Activations::kComfyFallback);
  CHECK(largest_logit_error(fixture, pipeline, "comfy_bf16") < kInt8Bf16LogitTolerance);
}

}  // namespace
}  // namespace treble::testing
