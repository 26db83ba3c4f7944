#include "engine/memory_plan.h"

#include <doctest/doctest.h>
#include <treble/error.h>

#include <vector>

#include "cuda/cuda_planner.h"
#include "engine/backend.h"
#include "engine/pack.h"
#include "engine/pipeline.h"
#include "model/shape_source.h"
#include "model/synthetic.h"

namespace treble {
namespace {

constexpr std::int64_t kTokens = 320;

EncodedRecord record_of(std::int64_t tokens, std::int64_t questions, std::int64_t options_each) {
  EncodedRecord record;
  record.input_ids.assign(static_cast<std::size_t>(tokens), 7);
  for (std::int64_t q = 0; q < questions; ++q) {
    EncodedQuestion question;
    question.type = QuestionType::kChoice;
    question.question_span = {0, 1};
    question.option_spans.assign(static_cast<std::size_t>(options_each), {0, 1});
    record.questions.push_back(std::move(question));
  }
  return record;
}

TEST_CASE("plan_memory: no pass that may be packed takes more activations, and a long record nearly as much") {
  ModelConfig config = synthetic_config("4x256");
  config.vision.reset();
  cuda::CudaPlanner planner({.activation_dtype = DType::kF32});
  ShapeSource shapes(false);
  const MemoryNeeds needs = plan_memory(config, shapes, kTokens, planner);
  CHECK(needs.pass_tokens == kTokens);
  const auto peak = [&](const std::vector<EncodedRecord>& records) {
    std::unique_ptr<Ops> ops = make_ops("cpu", Precision::kF32);
    Model model = synthetic_model(config, *ops);
    Pipeline pipeline(std::move(ops), std::move(model), 1);
    pipeline.run(records);
    return pipeline.peak_activation_bytes();
  };
  const std::vector<std::vector<EncodedRecord>> passes = {
      {record_of(kTokens, 1, 2)},
      {record_of(kTokens, 1, kTokens - 1)},
      {record_of(kTokens, kTokens / 2, 1)},
      std::vector<EncodedRecord>(kTokens / 64, record_of(64, 1, 63)),
      std::vector<EncodedRecord>(kTokens / 64, record_of(64, 32, 1)),
  };
  std::size_t most = 0;
  for (const std::vector<EncodedRecord>& records : passes) most = std::max(most, peak(records));
  CHECK(most <= needs.activations);
  // What the processor reads in place is copied for a GPU: ids and positions.
  CHECK(needs.activations < most + most / 20);
}

TEST_CASE("plan_pieces: a record in pieces carries what was planned, and passes take no more than without it") {
  ModelConfig config = synthetic_config("4x256");
  config.vision.reset();
  cuda::CudaPlanner planner({.activation_dtype = DType::kF32});
  ShapeSource shapes(false);
  const MemoryNeeds passes = plan_memory(config, shapes, kTokens, planner);
  for (const std::int64_t tokens : {kTokens + 1, 10 * kTokens}) {
    std::unique_ptr<Ops> ops = make_ops("cpu", Precision::kF32);
    Model model = synthetic_model(config, *ops);
    const EncodedRecord record = record_of(tokens, 8, 4);
    const PackedBatch batch = pack_batch(std::span(&record, 1), config.text.vocab_size);
    const PiecesNeeds needs = plan_pieces(model, batch, kTokens, planner);
    Pipeline pipeline(std::move(ops), std::move(model), 1, 0, {.max_tokens = kTokens});
    pipeline.run(std::span(&record, 1));
    CHECK(pipeline.peak_carried_bytes() == needs.carried);
    CHECK(pipeline.peak_activation_bytes() <= passes.activations);
    CHECK(needs.scratch <= passes.scratch);
  }
}

TEST_CASE("plan_pieces: of the 27B, 65,536 tokens carry less than 5 GiB") {
  const ModelConfig config = synthetic_config("27b");
  cuda::CudaPlanner planner({}, 90);
  ShapeSource shapes(true);
  const Model model = build_model(config, shapes, planner);
  const auto plan = [&](std::int64_t tokens) {
    EncodedRecord record = record_of(tokens, 8, 4);
    const auto last = static_cast<std::int32_t>(tokens - 1);
    for (EncodedQuestion& question : record.questions) {  // the schema stands at the end of a prompt
      question.question_span = {last - 1000, last};
      question.option_spans.assign(4, {last - 1000, last});
    }
    return plan_pieces(model, pack_batch(std::span(&record, 1), config.text.vocab_size), 8192, planner);
  };
  const PiecesNeeds needs = plan(65536), half = plan(32768);
  // Of every token 16 layers of keys and values, 4 heads of 256 each, in bf16: 64 KiB; and the head's 4 KiB.
  CHECK(needs.carried - half.carried == 32768 * std::size_t{68 << 10});
  CHECK(needs.carried < std::size_t{5} << 30);
  MESSAGE("carried: ", needs.carried, " bytes, scratch ", needs.scratch);
}

TEST_CASE("plan_memory: INT8 weights of the 27B take half, and passes no more than those of bf16") {
  const ModelConfig config = synthetic_config("27b");
  const auto plan = [&](WeightConversion conversion) {
    cuda::CudaPlanner planner({}, 90);
    ShapeSource shapes(true, conversion);
    return plan_memory(config, shapes, 2304, planner);
  };
  const MemoryNeeds bf16 = plan(WeightConversion::kNone), int8 = plan(WeightConversion::kInt8Convrot);
  // 24,326,963,200 weights take a byte less each, and a scale a row of 5,120 and more.
  CHECK(bf16.weights - int8.weights > 24'200'000'000);
  CHECK(bf16.weights - int8.weights < 24'326'963'200);
  CHECK(int8.activations <= bf16.activations);
  MESSAGE("int8: ", int8.weights, " bytes of weights, ", int8.activations, " of activations, ", int8.scratch,
          " of scratch; bf16: ", bf16.weights, ", ", bf16.activations, ", ", bf16.scratch);
}

TEST_CASE("plan_memory: NF4 weights of the 27B fit 12.2 GiB, and a record of 5,000 tokens beside them 14 GiB") {
  ModelConfig config = synthetic_config("27b");
  config.vision.reset();
  cuda::CudaPlanner planner({}, 90);
  ShapeSource shapes(false, WeightConversion::kNf4);
  const MemoryNeeds needs = plan_memory(config, shapes, 5056, planner);
  // 24,350,556,160 weights, a byte for two of them, one for 64 and 4 for 16,384; the rest in bf16.
  CHECK(needs.weights > 12'561'000'000);
  CHECK(static_cast<double>(needs.weights) < 12.2 * (1 << 30));
  CHECK(static_cast<double>(needs.weights + needs.activations + needs.scratch) < 14.0 * (1 << 30));
  MESSAGE("nf4: ", needs.weights, " bytes of weights, ", needs.activations, " of activations, ", needs.scratch,
          " of scratch");
}

TEST_CASE("plan_memory: longer passes and a vision tower take more") {
  const ModelConfig config = synthetic_config("4x256");
  const auto plan = [&](bool has_vision, std::int64_t tokens) {
    cuda::CudaPlanner planner({});
    ShapeSource shapes(has_vision);
    return plan_memory(config, shapes, tokens, planner);
  };
  CHECK(plan(false, 1024).activations > 15 * plan(false, 64).activations);
  CHECK(plan(false, 1024).weights == plan(false, 64).weights);
  CHECK(plan(true, 1024).activations > plan(false, 1024).activations);
}

}  // namespace
}  // namespace treble
