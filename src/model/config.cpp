#include "model/config.h"

#include <fmt/format.h>
#include <treble/error.h>
#include <treble/json.h>

#include <cmath>
#include <string_view>

#include "base/config_section.h"

namespace treble {
namespace {

std::vector<LayerKind> read_layer_types(const ConfigSection& text, std::int64_t num_layers) {
  const Json* listed = text.find("layer_types");
  if (!listed) return regular_layer_types(num_layers, text.positive("full_attention_interval", 4));
  if (!listed->is_array() || static_cast<std::int64_t>(listed->as_array().size()) != num_layers)
    text.fail(fmt::format("\"layer_types\" is not a list of num_hidden_layers = {} names", num_layers));
  std::vector<LayerKind> kinds;
  for (const Json& name : listed->as_array()) {
    if (name == Json("linear_attention"))
      kinds.push_back(LayerKind::kDeltaNet);
    else if (name == Json("full_attention"))
      kinds.push_back(LayerKind::kAttention);
    else
      text.fail(fmt::format("\"layer_types\" holds {}, expected \"linear_attention\" or \"full_attention\"",
                            dump_json(name)));
  }
  return kinds;
}

/// Rotary parameters stand in rope_parameters, in older files beside it.
void read_rope(const ConfigSection& text, TextConfig& config) {
  config.partial_rotary_factor = text.number("partial_rotary_factor", config.partial_rotary_factor);
  config.rope_theta = static_cast<float>(text.number("rope_theta", config.rope_theta));
  if (text.find("rope_parameters")) {
    const ConfigSection rope = text.section("rope_parameters");
    rope.require("rope_type", "default");
    rope.require("mrope_interleaved", true);
    config.partial_rotary_factor = rope.number("partial_rotary_factor", config.partial_rotary_factor);
    config.rope_theta = static_cast<float>(rope.number("rope_theta", config.rope_theta));
    if (const Json* section = rope.find("mrope_section")) {
      if (!section->is_array() || section->as_array().size() != 3)
        rope.fail("\"mrope_section\" is not a list of 3 integers");
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const Json& count = section->as_array()[axis];
        long long frequencies = 0;
        if (!count.is_number() || !count.as_int64(frequencies) || frequencies < 0 || frequencies > config.head_dim)
          rope.fail("\"mrope_section\" is not a list of 3 integers");
        config.mrope_section[axis] = static_cast<std::int32_t>(frequencies);
      }
    }
  }
  const std::int64_t rotary_dim = config.rotary_dim();
  if (config.partial_rotary_factor > 1 || rotary_dim < 2 || rotary_dim % 2 != 0)
    text.fail(fmt::format("rotates {} of {} features, expected an even number of them", rotary_dim, config.head_dim));
}

TextConfig read_text_config(const ConfigSection& text) {
  TextConfig config;
  config.vocab_size = text.positive("vocab_size", config.vocab_size);
  config.hidden_size = text.positive("hidden_size", config.hidden_size);
  config.intermediate_size = text.positive("intermediate_size", config.intermediate_size);
  config.num_hidden_layers = text.positive("num_hidden_layers", config.num_hidden_layers);
  config.num_attention_heads = text.positive("num_attention_heads", config.num_attention_heads);
  config.num_key_value_heads = text.positive("num_key_value_heads", config.num_key_value_heads);
  config.head_dim = text.positive("head_dim", config.head_dim);
  config.linear_conv_kernel_dim = text.positive("linear_conv_kernel_dim", config.linear_conv_kernel_dim);
  config.linear_key_head_dim = text.positive("linear_key_head_dim", config.linear_key_head_dim);
  config.linear_value_head_dim = text.positive("linear_value_head_dim", config.linear_value_head_dim);
  config.linear_num_key_heads = text.positive("linear_num_key_heads", config.linear_num_key_heads);
  config.linear_num_value_heads = text.positive("linear_num_value_heads", config.linear_num_value_heads);
  config.max_position_embeddings = text.positive("max_position_embeddings", config.max_position_embeddings);
  config.rms_norm_eps = static_cast<float>(text.number("rms_norm_eps", config.rms_norm_eps));
  text.require("hidden_act", "silu");
  text.require("attention_bias", false);
  text.require("attn_output_gate", true);
  if (config.num_attention_heads % config.num_key_value_heads != 0)
    text.fail(fmt::format("has {} query heads, no multiple of {} key/value heads", config.num_attention_heads,
                          config.num_key_value_heads));
  if (config.linear_num_value_heads % config.linear_num_key_heads != 0)
    text.fail(fmt::format("has {} delta-rule value heads, no multiple of {} key heads", config.linear_num_value_heads,
                          config.linear_num_key_heads));
  read_rope(text, config);
  config.layer_types = read_layer_types(text, config.num_hidden_layers);
  return config;
}

VisionConfig read_vision_config(const ConfigSection& vision, std::int64_t text_hidden_size) {
  VisionConfig config;
  config.depth = vision.positive("depth", config.depth);
  config.hidden_size = vision.positive("hidden_size", config.hidden_size);
  config.intermediate_size = vision.positive("intermediate_size", config.intermediate_size);
  config.num_heads = vision.positive("num_heads", config.num_heads);
  config.out_hidden_size = vision.positive("out_hidden_size", config.out_hidden_size);
  config.num_position_embeddings = vision.positive("num_position_embeddings", config.num_position_embeddings);
  vision.require("hidden_act", "gelu_pytorch_tanh");
  vision.require("in_channels", Json::integer(VisionConfig::kInChannels));
  vision.require("patch_size", Json::integer(VisionConfig::kPatchSize));
  vision.require("temporal_patch_size", Json::integer(VisionConfig::kTemporalPatchSize));
  vision.require("spatial_merge_size", Json::integer(VisionConfig::kSpatialMergeSize));
  vision.require("deepstack_visual_indexes", Json::Array{});
  if (vision.find("rope_parameters")) {
    const ConfigSection rope = vision.section("rope_parameters");
    rope.require("rope_type", "axial");
    config.rope_theta = static_cast<float>(rope.number("rope_theta", config.rope_theta));
  }
  // Two axes turn pairs of features.
  if (config.hidden_size % config.num_heads != 0 || config.head_dim() % 4 != 0)
    vision.fail(fmt::format("has {} features in {} heads, expected a multiple of 4 in each", config.hidden_size,
                            config.num_heads));
  const auto side = std::llround(std::sqrt(static_cast<double>(config.num_position_embeddings)));
  if (side * side != config.num_position_embeddings)
    vision.fail(
        fmt::format("\"num_position_embeddings\" is {}, expected a square number", config.num_position_embeddings));
  if (config.out_hidden_size != text_hidden_size)
    vision.fail(fmt::format("\"out_hidden_size\" is {}, the text model's \"hidden_size\" is {}", config.out_hidden_size,
                            text_hidden_size));
  return config;
}

HeadConfig read_head_config(const ConfigSection& head, std::int64_t hidden_size) {
  HeadConfig config;
  config.hidden_size = head.positive("hidden_size");
  config.width = head.positive("width");
  config.routing_layers = head.positive("routing_layers");
  config.layers = head.positive("layers");
  config.heads = head.positive("heads");
  config.feedforward = head.positive("feedforward");
  if (config.hidden_size != hidden_size)
    head.fail(fmt::format("\"hidden_size\" is {}, config.json says {}", config.hidden_size, hidden_size));
  if (config.width % config.heads != 0)
    head.fail(fmt::format("\"width\" {} is no multiple of \"heads\" {}", config.width, config.heads));
  return config;
}

}  // namespace

std::vector<LayerKind> regular_layer_types(std::int64_t num_layers, std::int64_t full_attention_interval) {
  std::vector<LayerKind> kinds;
  for (std::int64_t layer = 1; layer <= num_layers; ++layer)
    kinds.push_back(layer % full_attention_interval == 0 ? LayerKind::kAttention : LayerKind::kDeltaNet);
  return kinds;
}

ModelConfig read_config(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json";
  const Json json = read_config_file(path);
  const ConfigSection top(json, path.string());
  top.require("model_type", "qwen3_5");
  const ConfigSection text = top.section("text_config");

  ModelConfig config;
  config.text = read_text_config(text);
  if (top.find("vision_config"))
    config.vision = read_vision_config(top.section("vision_config"), config.text.hidden_size);
  config.tie_word_embeddings = top.boolean("tie_word_embeddings", text.boolean("tie_word_embeddings", false));

  const std::filesystem::path head_path = folder / "joint_head_config.json";
  const Json head_json = read_config_file(head_path);
  config.head = read_head_config(ConfigSection(head_json, head_path.string()), config.text.hidden_size);
  return config;
}

std::int64_t read_max_positions(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json";
  const Json json = read_config_file(path);
  return ConfigSection(json, path.string()).section("text_config").positive("max_position_embeddings", 32768);
}

}  // namespace treble
