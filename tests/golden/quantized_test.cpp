// Quantised releases against the values of the original stack (tests/data/README.md).

#include <doctest/doctest.h>

#include <algorithm>

#include "compare.h"
#include "engine/pack.h"
#include "model/backbone.h"

namespace treble::testing {
namespace {

// fp32 sums in another order, as for bf16 weights: the codes stand for the same numbers everywhere.
constexpr double kLogitTolerance = 5e-5;
constexpr double kHiddenTolerance = 2e-5;  // relative L2

// Twice the noise between the original's bf16 and fp32 runs.
constexpr double kBf16LogitTolerance = 0.07;

/// The largest error of a logit in all text requests.
double largest_logit_error(const Fixture& fixture, Pipeline& pipeline, std::string_view run) {
  const Tokenizer tokenizer(fixture.release());
  double largest = 0;
  for (const FixtureCase& fixture_case : fixture.cases()) {
    CAPTURE(fixture_case.name);
    const EncodedRecord record = encode(fixture_case, tokenizer);
    const Logits logits = pipeline.run(std::span(&record, 1));
    largest = std::max(largest, largest_difference(logits[0], fixture.logits(fixture_case, run)));
  }
  MESSAGE("largest error of a logit: ", largest);
  return largest;
}

TEST_CASE("golden: logits of an NF4 release are the original stack's") {
  const Fixture fixture("micro-nf4");
  Pipeline pipeline = open(fixture, Precision::kF32);
  CHECK(largest_logit_error(fixture, pipeline, "fp32") < kLogitTolerance);
}

TEST_CASE("golden: hidden states of an NF4 release are the original stack's") {
  const Fixture fixture("micro-nf4");
  const std::unique_ptr<Ops> ops = make_ops("cpu", Precision::kF32);
  const Model model = load_model(fixture.release(), *ops);
  const EncodedRecord record = encode(fixture.find("card_example"), Tokenizer(fixture.release()));
  const PackedBatch batch = pack_batch(std::span(&record, 1), model.config.text.vocab_size);
  Workspace workspace(ops->memory());
  const Workspace::Scope scope(workspace);
  const TensorView hidden = run_backbone(model, batch, *ops, workspace);
  CHECK(relative_l2(hidden, fixture.tensor("card_example.hidden")) < kHiddenTolerance);
}

TEST_CASE("golden: an NF4 release with bf16 activations stays within twice the original's own bf16 noise") {
  const Fixture fixture("micro-nf4");
  Pipeline pipeline = open(fixture, Precision::kBf16);
  CHECK(largest_logit_error(fixture, pipeline, "fp32") < kBf16LogitTolerance);
}

}  // namespace
}  // namespace treble::testing
