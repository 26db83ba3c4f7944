#include "model/config.h"

#include <doctest/doctest.h>
#include <treble/error.h>

#include <string>

#include "checkpoint/testing/release_files.h"

namespace treble::testing {
namespace {

/// Reads the micro release's configuration with one piece of a file's text replaced.
ModelConfig read_edited(const std::string& file, const std::string& piece, const std::string& replacement) {
  const TempFolder folder;
  for (const char* name : {"config.json", "joint_head_config.json"}) {
    std::string text = read_file(micro_release() / name);
    if (name == file) {
      const std::size_t at = text.find(piece);
      REQUIRE(at != std::string::npos);
      text.replace(at, piece.size(), replacement);
    }
    write_file(folder / name, text);
  }
  return read_config(folder.path());
}

std::string error_of(const std::string& file, const std::string& piece, const std::string& replacement) {
  try {
    read_edited(file, piece, replacement);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kCheckpoint);
    return error.what();
  }
  return "no error";
}

TEST_CASE("config: the micro release is read as it is written") {
  const ModelConfig config = read_config(micro_release());
  CHECK(config.text.hidden_size == 256);
  CHECK(config.text.conv_dim() == 2 * 2 * 128 + 6 * 128);
  CHECK(config.text.rotary_dim() == 64);
  CHECK(config.text.mrope_section == std::array<std::int32_t, 3>{11, 11, 10});
  CHECK(config.text.layer_types == regular_layer_types(4));
  CHECK(config.head.width == 64);
  REQUIRE(config.vision);
  CHECK(config.vision->depth == 2);
  CHECK(config.vision->head_dim() == 72);
  CHECK(config.vision->rope_theta == 1e4f);
  CHECK_FALSE(config.tie_word_embeddings);
}

TEST_CASE("config: without layer_types every fourth layer is full attention") {
  const ModelConfig config = read_edited("config.json", "\"layer_types\"", "\"unused\"");
  CHECK(config.text.layer_types ==
        std::vector{LayerKind::kDeltaNet, LayerKind::kDeltaNet, LayerKind::kDeltaNet, LayerKind::kAttention});
}

TEST_CASE("config: tie_word_embeddings at the top level decides") {
  const std::string text = read_file(micro_release() / "config.json");
  // The top-level key stands last in the file.
  const std::size_t at = text.rfind("\"tie_word_embeddings\": false");
  REQUIRE(at != std::string::npos);
  const TempFolder folder;
  write_file(folder / "joint_head_config.json", read_file(micro_release() / "joint_head_config.json"));
  write_file(folder / "config.json", std::string(text).replace(at, 28, "\"tie_word_embeddings\": true "));
  CHECK(read_config(folder.path()).tie_word_embeddings);
}

TEST_CASE("config: a value that is not implemented is refused, with the key and what is") {
  CHECK(error_of("config.json", "\"model_type\": \"qwen3_5\"", "\"model_type\": \"llama\"")
            .find("\"model_type\" is \"llama\"") != std::string::npos);
  CHECK(error_of("config.json", "\"attention_bias\": false", "\"attn_output_gate\": false").find("attn_output_gate") !=
        std::string::npos);
  CHECK(error_of("config.json", "\"rope_type\": \"default\"", "\"rope_type\": \"yarn\"")
            .find("\"rope_type\" is \"yarn\"") != std::string::npos);
  CHECK(error_of("config.json", "\"linear_attention\"", "\"mamba\"").find("layer_types") != std::string::npos);
}

TEST_CASE("config: sizes that are missing, of a wrong type or do not divide are refused by name") {
  CHECK(error_of("config.json", "\"hidden_size\": 256", "\"hidden_size\": -1").find("\"hidden_size\" is -1") !=
        std::string::npos);
  CHECK(error_of("config.json", "\"hidden_size\": 256", "\"hidden_size\": \"256\"").find("expected an integer") !=
        std::string::npos);
  CHECK(error_of("config.json", "\"linear_num_value_heads\": 6", "\"linear_num_value_heads\": 5").find("no multiple") !=
        std::string::npos);
  CHECK(error_of("config.json", "\"num_hidden_layers\": 4", "\"num_hidden_layers\": 5").find("layer_types") !=
        std::string::npos);
  CHECK(error_of("joint_head_config.json", "\"width\"", "\"breadth\"").find("has no \"width\"") != std::string::npos);
  CHECK(
      error_of("joint_head_config.json", "\"hidden_size\": 256", "\"hidden_size\": 512").find("config.json says 256") !=
      std::string::npos);
}

TEST_CASE("config: without vision_config the release reads text only") {
  CHECK_FALSE(read_edited("config.json", "\"vision_config\"", "\"unused\"").vision);
}

TEST_CASE("config: a vision tower of another form is refused by name") {
  const auto check = [](const char* piece, const char* replacement, const char* words) {
    CAPTURE(piece);
    CHECK(error_of("config.json", piece, replacement).find(words) != std::string::npos);
  };
  check("\"patch_size\": 16", "\"patch_size\": 14", "vision_config \"patch_size\" is 14, this engine implements 16");
  check("\"gelu_pytorch_tanh\"", "\"silu\"", "\"hidden_act\" is \"silu\"");
  check("\"deepstack_visual_indexes\": []", "\"deepstack_visual_indexes\": [8]", "deepstack_visual_indexes");
  check("\"rope_type\": \"axial\"", "\"rope_type\": \"default\"", "rope_type");
  check("\"num_heads\": 2", "\"num_heads\": 8", "expected a multiple of 4 in each");
  check("\"num_position_embeddings\": 2304", "\"num_position_embeddings\": 2305", "expected a square number");
  check("\"out_hidden_size\": 256", "\"out_hidden_size\": 512", "the text model's \"hidden_size\" is 256");
}

TEST_CASE("config: a missing or broken file is named") {
  const TempFolder folder;
  CHECK_THROWS_WITH_AS(read_config(folder.path()), doctest::Contains("config.json"), Error);
  write_file(folder / "config.json", "{\"model_type\": ");
  CHECK_THROWS_WITH_AS(read_config(folder.path()), doctest::Contains("config.json"), Error);
}

}  // namespace
}  // namespace treble::testing
