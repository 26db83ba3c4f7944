#include "checkpoint/expected_tensors.h"

#include <doctest/doctest.h>
#include <treble/error.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/mapped_file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/testing/release_files.h"

namespace treble {
namespace {

Json parse(std::string_view text) {
  return parse_json(text, "test", ErrorCode::kCheckpoint);
}

struct Totals {
  std::int64_t tensors = 0, parameters = 0;
};

Totals totals(const std::vector<ExpectedTensor>& tensors) {
  Totals out;
  for (const ExpectedTensor& tensor : tensors) {
    std::int64_t count = 1;
    for (const std::int64_t size : tensor.shape) count *= size;
    out.tensors += 1;
    out.parameters += count;
  }
  return out;
}

std::string message_of(auto&& call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kCheckpoint);
    return error.what();
  }
  return "no error";
}

// The sizes that distinguish the published models; everything else has its default.
constexpr const char* kClef = R"({"text_config": {"hidden_size": 5120, "intermediate_size": 17408,
  "num_hidden_layers": 64, "num_attention_heads": 24, "linear_num_value_heads": 48, "vocab_size": 248320},
  "vision_config": {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "out_hidden_size": 5120}})";
constexpr const char* kClefFlash = R"({"text_config": {"hidden_size": 4096, "intermediate_size": 12288,
  "num_hidden_layers": 32, "vocab_size": 248320},
  "vision_config": {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "out_hidden_size": 4096}})";

}  // namespace

TEST_CASE("expected_tensors: the counts of the published releases") {
  const Totals clef = totals(expected_backbone_tensors(parse(kClef)));
  CHECK(clef.tensors == 1184);
  CHECK(clef.parameters == 27'356'728'560);
  const Totals flash = totals(expected_backbone_tensors(parse(kClefFlash)));
  CHECK(flash.tensors == 760);
  CHECK(flash.parameters == 9'409'813'744);
}

TEST_CASE("expected_tensors: the published heads have 256.1 and 243.5 MB in bf16") {
  const auto tenths_of_mb = [](const char* hidden_size) {
    const std::string config = std::string(R"({"width": 1024, "routing_layers": 2, "layers": 4, "heads": 16,
      "feedforward": 4096, "hidden_size": )") +
                               hidden_size + "}";
    return (2 * totals(expected_head_tensors(parse(config))).parameters + 50'000) / 100'000;
  };
  CHECK(tenths_of_mb("5120") == 2561);
  CHECK(tenths_of_mb("4096") == 2435);
}

TEST_CASE("expected_tensors: names and shapes are those of the micro release") {
  const Checkpoint checkpoint(testing::micro_release());
  std::vector<ExpectedTensor> expected =
      expected_backbone_tensors(parse(read_text_file(testing::micro_release() / "config.json")));
  for (ExpectedTensor& tensor :
       expected_head_tensors(parse(read_text_file(testing::micro_release() / "joint_head_config.json"))))
    expected.push_back(std::move(tensor));
  CHECK(expected.size() == checkpoint.entries().size());
  for (const ExpectedTensor& tensor : expected) {
    CAPTURE(tensor.name);
    const Checkpoint::Entry* entry = checkpoint.find(tensor.name);
    REQUIRE(entry);
    REQUIRE(entry->view.rank() == static_cast<int>(tensor.shape.size()));
    for (int dim = 0; dim < entry->view.rank(); ++dim)
      CHECK(entry->view.size(dim) == tensor.shape[static_cast<std::size_t>(dim)]);
  }
}

TEST_CASE("expected_tensors: tied embeddings need no lm_head; the top level decides") {
  const auto has_lm_head = [](std::string_view flags) {
    const std::string config = std::string(R"({"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
      "vocab_size": 8, )") + std::string(flags) +
                               "}";
    const std::vector<ExpectedTensor> tensors = expected_backbone_tensors(parse(config));
    return std::ranges::any_of(tensors, [](const ExpectedTensor& t) { return t.name == "lm_head.weight"; });
  };
  CHECK(has_lm_head(R"("x": 0)"));
  CHECK_FALSE(has_lm_head(R"("tie_word_embeddings": true)"));
  CHECK(has_tied_embeddings(parse(R"({"text_config": {"tie_word_embeddings": true}})")));
  CHECK_FALSE(
      has_tied_embeddings(parse(R"({"tie_word_embeddings": false, "text_config": {"tie_word_embeddings": true}})")));
}

TEST_CASE("expected_tensors: without layer_types every fourth layer is full attention") {
  const std::vector<bool> layers = full_attention_layers(parse(R"({"num_hidden_layers": 9})"));
  CHECK(layers == std::vector<bool>{false, false, false, true, false, false, false, true, false});
}

TEST_CASE("expected_tensors: an impossible configuration is named, not followed") {
  CHECK(message_of([] { expected_backbone_tensors(parse("{}")); }) ==
        "checkpoint: hidden_size is missing, expected a whole number; use the release's own configuration");
  CHECK(message_of([] {
          full_attention_layers(parse(R"({"num_hidden_layers": 1e3})"));
        }).find("is 1e3, expected 1 to") != std::string::npos);
  CHECK(message_of([] { full_attention_layers(parse(R"({"num_hidden_layers": 1000000})")); }).find("at most 4096") !=
        std::string::npos);
  CHECK(message_of([] { full_attention_layers(parse(R"({"num_hidden_layers": "4"})")); }).find("is a string") !=
        std::string::npos);
  CHECK(message_of([] {
          full_attention_layers(parse(R"({"num_hidden_layers": 1, "layer_types": ["mamba"]})"));
        }).find("layer_types[0]") != std::string::npos);
  CHECK(message_of([] {
          full_attention_layers(parse(R"({"num_hidden_layers": 2, "layer_types": ["full_attention"]})"));
        }).find("expected an array of 2 names") != std::string::npos);
}

}  // namespace treble
