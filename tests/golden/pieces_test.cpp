// A record that is longer than a pass is read in pieces, and its answer stays what one pass gives.

#include "model/pieces.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "compare.h"

namespace treble::testing {
namespace {

/// A pipeline whose passes are of so many tokens.
Pipeline open_with_passes(const Fixture& fixture, Precision precision, std::int64_t pass_tokens) {
  std::unique_ptr<Ops> ops = make_ops("cpu", precision);
  Model model = load_model(fixture.release(), *ops);
  return Pipeline(std::move(ops), std::move(model), 0, Pipeline::kVisionCacheBytes, {.max_tokens = pass_tokens});
}

TEST_CASE(
    "pieces: fp32 hidden states are those of one pass to the last bit, wherever pieces end and whatever is in them") {
  const Fixture fixture;
  const Tokenizer tokenizer(fixture.release());
  const std::unique_ptr<Ops> ops = make_ops("cpu", Precision::kF32);
  const Model model = load_model(fixture.release(), *ops);
  for (const FixtureCase& fixture_case : fixture.cases()) {
    CAPTURE(fixture_case.name);
    const EncodedRecord record = encode(fixture_case, tokenizer);
    const PackedBatch batch = pack_batch(std::span(&record, 1), model.config.text.vocab_size);
    if (batch.total_tokens() > 1024) continue;  // many pieces show nothing more, and take minutes under the sanitizers
    Workspace workspace(ops->memory()), carried(ops->memory());
    const Workspace::Scope scope(workspace), carried_scope(carried);
    TensorView features;
    if (!batch.media.empty()) features = run_vision(model, batch.media, *ops, workspace);
    const TensorView whole = run_backbone(model, batch, features, *ops, workspace);
    const std::span<const float> expected(whole.as<float>(), static_cast<std::size_t>(whole.num_elements()));
    for (const std::int64_t piece_tokens : {64, 200}) {
      CAPTURE(piece_tokens);
      std::vector<float> hidden;
      std::vector<std::int64_t> lengths;
      read_in_pieces(model, batch, features, piece_tokens, *ops, workspace, carried,
                     [&](const std::string& stage, const TensorView& value) {
                       if (stage != "hidden") return;
                       hidden.insert(hidden.end(), value.as<float>(), value.as<float>() + value.num_elements());
                       lengths.push_back(value.size(0));
                     });
      CHECK(std::ranges::equal(hidden, expected));
      for (const std::int64_t length : lengths) CHECK(length <= piece_tokens);
      lengths.pop_back();
      CHECK(std::ranges::all_of(lengths, [](std::int64_t length) { return length % kPieceUnit == 0; }));
    }
  }
}

TEST_CASE("pieces: the logits of every request are those of one pass, in fp32 to the last bit") {
  const Fixture fixture;
  const Tokenizer tokenizer(fixture.release());
  for (const Precision precision : {Precision::kF32, Precision::kBf16}) {
    Pipeline whole = open(fixture, precision), pieces = open_with_passes(fixture, precision, 128);
    // Of bf16 products a library may choose another order of sums for fewer rows: the original stack's own noise.
    const double tolerance = precision == Precision::kF32 ? 0 : 0.036;
    for (const FixtureCase& fixture_case : fixture.cases()) {
      CAPTURE(fixture_case.name);
      const EncodedRecord record = encode(fixture_case, tokenizer);
      CHECK(needs_pieces(record, 128));
      CHECK(largest_difference(pieces.run(std::span(&record, 1))[0], whole.run(std::span(&record, 1))[0]) <= tolerance);
    }
    CHECK(pieces.num_computed_media() == whole.num_computed_media());
  }
}

TEST_CASE("pieces: records of any length go through one call, short ones together and long ones in pieces") {
  const Fixture fixture;
  const Tokenizer tokenizer(fixture.release());
  std::vector<EncodedRecord> records;
  for (const char* name : {"plain_string", "long_state", "empty_state", "video", "many_options"})
    records.push_back(encode(fixture.find(name), tokenizer));
  Pipeline whole = open(fixture, Precision::kF32), pieces = open_with_passes(fixture, Precision::kF32, 704);
  const Logits logits = pieces.run(records), expected = whole.run(records);
  REQUIRE(logits.size() == records.size());
  // What the head's products of all records together differ by from those of fewer; other sums, of 256 terms.
  constexpr double kTolerance = 5e-6;
  for (std::size_t i = 0; i < records.size(); ++i) CHECK(largest_difference(logits[i], expected[i]) < kTolerance);
}

TEST_CASE("pieces: an observer sees every stage of a piece before the next piece, and all rows in order") {
  const Fixture fixture;
  const Tokenizer tokenizer(fixture.release());
  const EncodedRecord record = encode(fixture.find("one_image"), tokenizer);
  using Stages = std::map<std::string, std::vector<float>>;
  const auto observed = [&](Pipeline pipeline) {
    Stages stages;
    pipeline.run(std::span(&record, 1), nullptr, [&](const std::string& stage, std::span<const float> rows) {
      stages[stage].insert(stages[stage].end(), rows.begin(), rows.end());
    });
    return stages;
  };
  const Stages pieces = observed(open_with_passes(fixture, Precision::kF32, 64));
  CHECK(pieces.contains("embed"));
  CHECK(pieces.contains("hidden"));
  CHECK(pieces == observed(open(fixture, Precision::kF32)));
}

}  // namespace
}  // namespace treble::testing
