// The whole spine against the values of the original stack (tests/data/README.md).

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <treble/engine.h>

#include <cmath>
#include <map>
#include <numeric>

#include "compare.h"
#include "engine/backend.h"
#include "engine/pipeline.h"
#include "fixture.h"
#include "media/media_item.h"
#include "text/tokenizer.h"

namespace treble::testing {
namespace {

// fp32 sums in another order, through four layers: the reference's own NumPy form is within 5e-6 of its PyTorch form.
constexpr double kLogitTolerance = 5e-5;
constexpr double kHiddenTolerance = 2e-5;  // relative L2

// Twice the noise that the original stack itself has between its bf16 and its fp32 run on these requests: 0.036 in a
// logit, 0.0066 in a probability.
constexpr double kBf16LogitTolerance = 0.07;
constexpr double kBf16ProbabilityTolerance = 0.013;

/// Largest difference between the numbers of two JSON values; infinite where anything else differs.
double difference(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) return std::abs(a.as_double() - b.as_double());
  if (a.is_object() && b.is_object() && a.as_object().size() == b.as_object().size()) {
    double largest = 0;
    for (std::size_t i = 0; i < a.as_object().size(); ++i) {
      const auto& [key_a, value_a] = a.as_object()[i];
      const auto& [key_b, value_b] = b.as_object()[i];
      if (key_a != key_b) return INFINITY;
      largest = std::max(largest, difference(value_a, value_b));
    }
    return largest;
  }
  return a == b ? 0.0 : INFINITY;
}

TEST_CASE("golden: ids and spans of every request equal the original encoder's") {
  const Fixture fixture;
  const Tokenizer tokenizer(fixture.release());
  for (const FixtureCase& fixture_case : fixture.cases()) {
    CAPTURE(fixture_case.name);
    const Json record = to_json(encode(fixture_case, tokenizer));
    CHECK(*record.find("input_ids") == *fixture_case.expected.find("input_ids"));
    CHECK(*record.find("questions") == *fixture_case.expected.find("questions"));
  }
}

TEST_CASE("golden: fp32 logits of every request are the original stack's, and so is the response to its last decimal") {
  const Fixture fixture;
  const Tokenizer tokenizer(fixture.release());
  Pipeline pipeline = open(fixture, Precision::kF32);
  for (const FixtureCase& fixture_case : fixture.cases()) {
    CAPTURE(fixture_case.name);
    const EncodedRecord record = encode(fixture_case, tokenizer);
    const Logits logits = pipeline.run(std::span(&record, 1));
    CHECK(largest_difference(logits[0], fixture.logits(fixture_case, "fp32")) < kLogitTolerance);
    // A probability on a rounding border may turn over.
    const Json response = to_json(decode_answers(fixture_case.request, record, logits[0]));
    CHECK(difference(response, *fixture_case.expected.find("response")) < 1.01e-4);
  }
}

TEST_CASE("golden: grids of images and videos equal the original processor's") {
  const Fixture fixture;
  int num_compared = 0;
  for (const char* name : {"one_image", "video", "image_and_videos"}) {
    for (const MediaKind kind : {MediaKind::kImage, MediaKind::kVideo}) {
      const bool is_image = kind == MediaKind::kImage;
      const TensorView expected =
          fixture.tensor(std::string(name) + (is_image ? ".image_grid_thw" : ".video_grid_thw"));
      if (!expected) continue;
      CAPTURE(name);
      std::vector<std::int64_t> grids;
      for (const auto& item : read_media(fixture.find(name)))
        if (item->kind == kind) grids.insert(grids.end(), {item->grid_t, item->grid_h, item->grid_w});
      const std::int64_t* first = expected.as<std::int64_t>();
      CHECK(grids == std::vector<std::int64_t>(first, first + expected.num_elements()));
      ++num_compared;
    }
  }
  CHECK(num_compared == 4);
}

/// What the original stack has at a stage, from the fixture; nothing where it was not kept. Of a mixer the fixture has
/// what it adds to the residual stream.
std::vector<float> expected_stage(const Fixture& fixture, const std::string& record, const std::string& stage) {
  const auto values = [&](const std::string& name) {
    const TensorView view = fixture.tensor(record + "." + name);
    return view ? std::vector<float>(view.as<float>(), view.as<float>() + view.num_elements()) : std::vector<float>();
  };
  std::vector<float> expected = values(stage);
  if (expected.empty() || !stage.ends_with(".mixer")) return expected;
  const int layer = std::stoi(stage.substr(5, 2));
  const std::vector<float> before = values(layer == 0 ? "embed" : fmt::format("layer{:02}.out", layer - 1));
  REQUIRE(before.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += before[i];
  return expected;
}

TEST_CASE("golden: every traced stage and the hidden states are the original stack's") {
  const Fixture fixture;
  const Tokenizer tokenizer(fixture.release());
  const std::unique_ptr<Ops> ops = make_ops("cpu", Precision::kF32);
  const Model model = load_model(fixture.release(), *ops);
  const std::map<std::string, int> stages_of = {{"card_example", 9}, {"one_image", 4}, {"image_and_videos", 0}};
  for (const auto& [name, expected_stages] : stages_of) {
    const EncodedRecord record = encode(fixture.find(name), tokenizer);
    int num_stages = 0;
    Workspace workspace(ops->memory());
    const Workspace::Scope scope(workspace);
    const TensorView hidden =
        run_record(model, record, *ops, workspace, [&](const std::string& stage, const TensorView& value) {
          std::vector<float> expected = expected_stage(fixture, name, stage);
          if (expected.empty()) return;
          CAPTURE(stage);
          const std::int64_t num_rows = std::ssize(expected) / value.size(1);
          const TensorView view(expected.data(), DType::kF32, {num_rows, value.size(1)});
          CHECK(relative_l2(value, view, kTraceRowStep) < kHiddenTolerance);
          ++num_stages;
        });
    CAPTURE(name);
    CHECK(num_stages == expected_stages);
    const TensorView expected = fixture.tensor(name + ".hidden");
    if (expected) CHECK(relative_l2(hidden, expected, kTraceRowStep) < kHiddenTolerance);
    CHECK(static_cast<bool>(expected) == (name != "one_image"));
  }
}

TEST_CASE("golden: bf16 activations stay within twice the original's own bf16 noise") {
  const Fixture fixture;
  const Tokenizer tokenizer(fixture.release());
  Pipeline pipeline = open(fixture, Precision::kBf16);
  double from_fp32 = 0, from_bf16 = 0;
  for (const FixtureCase& fixture_case : fixture.cases()) {
    CAPTURE(fixture_case.name);
    const EncodedRecord record = encode(fixture_case, tokenizer);
    const Logits logits = pipeline.run(std::span(&record, 1));
    const auto expected = fixture.logits(fixture_case, "fp32");
    CHECK(largest_difference(logits[0], expected) < kBf16LogitTolerance);
    CHECK(largest_probability_difference(logits[0], expected) < kBf16ProbabilityTolerance);
    from_fp32 = std::max(from_fp32, largest_probability_difference(logits[0], expected));
    from_bf16 = std::max(from_bf16, largest_probability_difference(logits[0], fixture.logits(fixture_case, "bf16")));
  }
  MESSAGE("bf16 activations: max |dp| ", from_bf16, " from the original's bf16 run, ", from_fp32, " from its fp32 run");
}

TEST_CASE("engine: an image or clip that comes again is not computed again, and gives the same logits") {
  const Fixture fixture;
  const Tokenizer tokenizer(fixture.release());
  Pipeline pipeline = open(fixture, Precision::kF32);
  // image_and_videos has the image of the one and the clip of the other.
  const std::vector<EncodedRecord> records = {encode(fixture.find("one_image"), tokenizer),
                                              encode(fixture.find("image_and_videos"), tokenizer),
                                              encode(fixture.find("video"), tokenizer)};
  const Logits together = pipeline.run(records);
  CHECK(pipeline.num_computed_media() == 3);
  const Logits again = pipeline.run(records);
  CHECK(pipeline.num_computed_media() == 3);
  Pipeline fresh = open(fixture, Precision::kF32);
  for (std::size_t i = 0; i < records.size(); ++i) {
    CHECK(largest_difference(again[i], together[i]) == 0.0);
    CHECK(largest_difference(fresh.run(std::span(&records[i], 1))[0], together[i]) < 1e-5);
  }
}

TEST_CASE("engine: a record gives the same logits alone and inside packed batches of 2 and 7 records") {
  const Fixture fixture;
  const Tokenizer tokenizer(fixture.release());
  Pipeline pipeline = open(fixture, Precision::kF32);
  std::vector<EncodedRecord> records;
  for (const char* name : {"plain_string", "three_types", "card_example", "option_order", "empty_state", "many_options",
                           "images_of_all_kinds"})
    records.push_back(encode(fixture.find(name), tokenizer));
  std::vector<std::vector<std::vector<float>>> alone;
  for (const EncodedRecord& record : records) alone.push_back(pipeline.run(std::span(&record, 1))[0]);
  for (const std::size_t count : {2, 7}) {
    CAPTURE(count);
    const Logits packed = pipeline.run(std::span(records).first(count));
    for (std::size_t i = 0; i < count; ++i) CHECK(largest_difference(packed[i], alone[i]) < 1e-5);
  }
}

/// A request of that many choice questions with that many options each, in few tokens: no option has a description.
Request wide_request(int questions, int options) {
  Request request;
  request.state = "The parcel is late.";
  for (int q = 0; q < questions; ++q) {
    Question question{.id = "q" + std::to_string(q), .type = QuestionType::kChoice, .instructions = {}, .options = {}};
    for (int o = 0; o < options; ++o) question.options.push_back({std::to_string(o * 7), Json()});
    request.questions.push_back(std::move(question));
  }
  return request;
}

TEST_CASE("engine: 1 question with 1 option, 255 options and 64 questions are all answered") {
  const Fixture fixture;
  const Engine engine(fixture.release());
  for (const auto& [questions, options] : {std::pair{1, 1}, {1, 255}, {64, 2}}) {
    CAPTURE(questions);
    CAPTURE(options);
    const Answers answers = engine.answer(wide_request(questions, options));
    REQUIRE(answers.answers.size() == static_cast<std::size_t>(questions));
    for (const Answer& answer : answers.answers) {
      REQUIRE(answer.probabilities.size() == static_cast<std::size_t>(options));
      CHECK(std::accumulate(answer.probabilities.begin(), answer.probabilities.end(), 0.0) ==
            doctest::Approx(1).epsilon(1e-6));
    }
  }
}

TEST_CASE("engine: a whole wide request gives the same logits beside others as alone") {
  const Fixture fixture;
  const Engine engine(fixture.release());
  const std::vector<Request> requests = {wide_request(1, 1), wide_request(3, 20), wide_request(9, 2)};
  const std::vector<Answers> together = engine.answer(requests);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Answers alone = engine.answer(requests[i]);
    for (std::size_t q = 0; q < alone.answers.size(); ++q)
      for (std::size_t o = 0; o < alone.answers[q].logits.size(); ++o)
        CHECK(std::abs(alone.answers[q].logits[o] - together[i].answers[q].logits[o]) < 1e-5f);
  }
}

TEST_CASE("engine: an observer sees the embedding, every layer and the last hidden states") {
  const Fixture fixture;
  const EncodedRecord record = encode(fixture.find("card_example"), Tokenizer(fixture.release()));
  std::vector<std::string> stages;
  Pipeline pipeline = open(fixture, Precision::kF32);
  pipeline.run(std::span(&record, 1), nullptr, [&](const std::string& stage, std::span<const float> rows) {
    stages.push_back(stage);
    if (stage != "hidden") return;
    const TensorView expected = fixture.tensor("card_example.hidden");
    std::vector<float> copy(rows.begin(), rows.end());
    const std::int64_t num_tokens = std::ssize(record.input_ids);
    REQUIRE(std::ssize(copy) == num_tokens * expected.size(1));
    const TensorView got(copy.data(), DType::kF32, {num_tokens, expected.size(1)});
    CHECK(relative_l2(got, expected, kTraceRowStep) < kHiddenTolerance);
  });
  CHECK(stages ==
        std::vector<std::string>{"embed", "layer00.out", "layer01.out", "layer02.out", "layer03.out", "hidden"});
}

TEST_CASE("engine: the number of threads does not change the logits") {
  const Fixture fixture;
  const Tokenizer tokenizer(fixture.release());
  const EncodedRecord record = encode(fixture.find("three_types"), tokenizer);
  Pipeline one = open(fixture, Precision::kF32, 1), three = open(fixture, Precision::kF32, 3);
  CHECK(largest_difference(one.run(std::span(&record, 1))[0], three.run(std::span(&record, 1))[0]) < 1e-5);
}

TEST_CASE("engine: no requests give no answers") {
  const Fixture fixture;
  CHECK(Engine(fixture.release()).answer(std::span<const Request>()).empty());
}

}  // namespace
}  // namespace treble::testing
