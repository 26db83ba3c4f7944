#include "checkpoint/expected_tensors.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <initializer_list>
#include <string_view>

namespace treble {
namespace {

constexpr std::int64_t kMaxSize = 1 << 20;    // above any real size; products of three stay below 2^63
constexpr std::int64_t kMaxLayers = 1 << 12;  // bounds the list that a broken configuration can ask for

[[noreturn]] void fail(std::string_view what) {
  throw Error(ErrorCode::kCheckpoint, fmt::format("checkpoint: {}; use the release's own configuration", what));
}

std::int64_t num_layers(const Json& object, const char* key, std::int64_t default_size = 0) {
  const std::int64_t count = config_size(object, key, default_size);
  if (count > kMaxLayers) fail(fmt::format("{} is {}, expected at most {}", key, count, kMaxLayers));
  return count;
}

const Json& text_config(const Json& config) {
  const Json* text = config.find("text_config");
  return text && text->is_object() ? *text : config;  // the text-only class has no inner object
}

/// Collects tensors under a prefix.
class List {
 public:
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }
  void add(std::string_view name, std::initializer_list<std::int64_t> shape) {
    tensors_.push_back({prefix_ + std::string(name), shape});
  }
  /// A weight and the bias of its rows.
  void add_linear(const std::string& name, std::int64_t rows, std::int64_t columns) {
    add(name + ".weight", {rows, columns});
    add(name + ".bias", {rows});
  }
  void add_layer_norm(const std::string& name, std::int64_t size) {
    add(name + ".weight", {size});
    add(name + ".bias", {size});
  }
  /// Attention with its query, key and value rows in one matrix.
  void add_attention(const std::string& name, std::int64_t width) {
    add(name + ".in_proj_weight", {3 * width, width});
    add(name + ".in_proj_bias", {3 * width});
    add_linear(name + ".out_proj", width, width);
  }
  std::vector<ExpectedTensor> take() { return std::move(tensors_); }

 private:
  std::string prefix_;
  std::vector<ExpectedTensor> tensors_;
};

void add_full_attention(List& list, const Json& text, std::int64_t hidden_size) {
  const std::int64_t head_dim = config_size(text, "head_dim", 256);
  const std::int64_t query_size = config_size(text, "num_attention_heads", 16) * head_dim;
  const std::int64_t key_size = config_size(text, "num_key_value_heads", 4) * head_dim;
  list.add("self_attn.q_proj.weight", {2 * query_size, hidden_size});  // query and output gate
  list.add("self_attn.k_proj.weight", {key_size, hidden_size});
  list.add("self_attn.v_proj.weight", {key_size, hidden_size});
  list.add("self_attn.o_proj.weight", {hidden_size, query_size});
  list.add("self_attn.q_norm.weight", {head_dim});
  list.add("self_attn.k_norm.weight", {head_dim});
}

void add_delta_net(List& list, const Json& text, std::int64_t hidden_size) {
  const std::int64_t num_v_heads = config_size(text, "linear_num_value_heads", 32);
  const std::int64_t value_head_dim = config_size(text, "linear_value_head_dim", 128);
  const std::int64_t key_dim =
      config_size(text, "linear_num_key_heads", 16) * config_size(text, "linear_key_head_dim", 128);
  const std::int64_t value_dim = num_v_heads * value_head_dim;
  const std::int64_t conv_dim = 2 * key_dim + value_dim;
  list.add("linear_attn.in_proj_qkv.weight", {conv_dim, hidden_size});
  list.add("linear_attn.in_proj_z.weight", {value_dim, hidden_size});
  list.add("linear_attn.in_proj_b.weight", {num_v_heads, hidden_size});
  list.add("linear_attn.in_proj_a.weight", {num_v_heads, hidden_size});
  list.add("linear_attn.conv1d.weight", {conv_dim, 1, config_size(text, "linear_conv_kernel_dim", 4)});
  list.add("linear_attn.A_log", {num_v_heads});
  list.add("linear_attn.dt_bias", {num_v_heads});
  list.add("linear_attn.norm.weight", {value_head_dim});
  list.add("linear_attn.out_proj.weight", {hidden_size, value_dim});
}

void add_text(List& list, const Json& config) {
  const Json& text = text_config(config);
  const std::int64_t hidden_size = config_size(text, "hidden_size");
  const std::int64_t intermediate_size = config_size(text, "intermediate_size");
  const std::int64_t vocab_size = config_size(text, "vocab_size");

  if (!has_tied_embeddings(config)) list.add("lm_head.weight", {vocab_size, hidden_size});
  list.set_prefix("text.");
  list.add("embed_tokens.weight", {vocab_size, hidden_size});
  list.add("norm.weight", {hidden_size});
  int layer = 0;
  for (const bool is_full : full_attention_layers(config)) {
    list.set_prefix(fmt::format("text.layers.{}.", layer++));
    list.add("input_layernorm.weight", {hidden_size});
    list.add("post_attention_layernorm.weight", {hidden_size});
    list.add("mlp.gate_proj.weight", {intermediate_size, hidden_size});
    list.add("mlp.up_proj.weight", {intermediate_size, hidden_size});
    list.add("mlp.down_proj.weight", {hidden_size, intermediate_size});
    is_full ? add_full_attention(list, text, hidden_size) : add_delta_net(list, text, hidden_size);
  }
}

void add_vision(List& list, const Json& vision) {
  const std::int64_t width = config_size(vision, "hidden_size");
  const std::int64_t intermediate_size = config_size(vision, "intermediate_size");
  const std::int64_t merge_size = config_size(vision, "spatial_merge_size", 2);
  const std::int64_t merged = width * merge_size * merge_size;
  const std::int64_t patch_size = config_size(vision, "patch_size", 16);

  list.set_prefix("visual.");
  list.add("patch_embed.proj.weight", {width, config_size(vision, "in_channels", 3),
                                       config_size(vision, "temporal_patch_size", 2), patch_size, patch_size});
  list.add("patch_embed.proj.bias", {width});
  list.add("pos_embed.weight", {config_size(vision, "num_position_embeddings", 2304), width});
  list.add_layer_norm("merger.norm", width);
  list.add_linear("merger.linear_fc1", merged, merged);
  list.add_linear("merger.linear_fc2", config_size(vision, "out_hidden_size"), merged);
  const std::int64_t depth = num_layers(vision, "depth");
  for (std::int64_t block = 0; block < depth; ++block) {
    list.set_prefix(fmt::format("visual.blocks.{}.", block));
    list.add_layer_norm("norm1", width);
    list.add_linear("attn.qkv", 3 * width, width);
    list.add_linear("attn.proj", width, width);
    list.add_layer_norm("norm2", width);
    list.add_linear("mlp.linear_fc1", intermediate_size, width);
    list.add_linear("mlp.linear_fc2", width, intermediate_size);
  }
}

}  // namespace

std::int64_t config_size(const Json& object, const char* key, std::int64_t default_size) {
  const Json* value = object.find(key);
  if (!value && default_size > 0) return default_size;
  if (!value) fail(fmt::format("{} is missing, expected a whole number", key));
  if (!value->is_number()) fail(fmt::format("{} is {}, expected a whole number", key, value->type_name()));
  long long size = 0;
  if (!value->as_int64(size) || size < 1 || size > kMaxSize)
    fail(fmt::format("{} is {}, expected 1 to {}", key, value->number_text().substr(0, 40), kMaxSize));
  return size;
}

bool has_tied_embeddings(const Json& config) {
  for (const Json* object : {&config, config.find("text_config")})
    if (const Json* tied = object ? object->find("tie_word_embeddings") : nullptr; tied && tied->is_bool())
      return tied->as_bool();
  return false;
}

std::vector<bool> full_attention_layers(const Json& config) {
  const Json& text = text_config(config);
  const auto count = static_cast<std::size_t>(num_layers(text, "num_hidden_layers"));
  std::vector<bool> is_full(count);
  const Json* types = text.find("layer_types");
  if (!types || types->is_null()) {
    const auto interval = static_cast<std::size_t>(config_size(text, "full_attention_interval", 4));
    for (std::size_t layer = 0; layer < count; ++layer) is_full[layer] = (layer + 1) % interval == 0;
    return is_full;
  }
  if (!types->is_array() || types->as_array().size() != count)
    fail(fmt::format("layer_types is {}, expected an array of {} names", types->type_name(), count));
  for (std::size_t layer = 0; layer < count; ++layer) {
    const Json& type = types->as_array()[layer];
    is_full[layer] = type == Json("full_attention");
    if (!is_full[layer] && type != Json("linear_attention"))
      fail(fmt::format("layer_types[{}] is no \"linear_attention\" and no \"full_attention\"", layer));
  }
  return is_full;
}

std::vector<ExpectedTensor> expected_backbone_tensors(const Json& config) {
  List list;
  add_text(list, config);
  if (const Json* vision = config.find("vision_config"); vision && vision->is_object()) add_vision(list, *vision);
  return list.take();
}

std::vector<ExpectedTensor> expected_head_tensors(const Json& head_config) {
  const std::int64_t hidden_size = config_size(head_config, "hidden_size");
  const std::int64_t width = config_size(head_config, "width");
  const std::int64_t feedforward = config_size(head_config, "feedforward");
  const std::int64_t routing_layers = num_layers(head_config, "routing_layers");
  const std::int64_t layers = num_layers(head_config, "layers");

  List list;
  list.set_prefix("head.");
  list.add_layer_norm("hidden_norm", hidden_size);
  for (const char* name : {"memory", "question", "option_question", "global", "option_context", "option_lexical"})
    list.add(fmt::format("{}_projection.weight", name), {width, hidden_size});
  list.add("type_embedding.weight", {3, width});
  for (const char* name : {"option_summary_norm", "field_norm", "option_norm"}) list.add_layer_norm(name, width);
  list.add_linear("residual_scorer.0", width, 4 * width);
  list.add_linear("residual_scorer.3", 1, width);
  for (const char* name : {"prior_logit_scale", "joint_logit_scale", "residual_gate"}) list.add(name, {});

  for (std::int64_t layer = 0; layer < routing_layers; ++layer) {
    list.set_prefix(fmt::format("head.evidence_layers.{}.", layer));
    for (const char* name : {"query_norm", "memory_norm", "feedforward_norm"}) list.add_layer_norm(name, width);
    list.add_attention("attention", width);
    list.add_linear("feedforward.0", feedforward, width);
    list.add_linear("feedforward.3", width, feedforward);
  }
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    list.set_prefix(fmt::format("head.layers.{}.", layer));
    list.add_attention("self_attn", width);
    list.add_attention("multihead_attn", width);
    for (const char* name : {"norm1", "norm2", "norm3"}) list.add_layer_norm(name, width);
    list.add_linear("linear1", feedforward, width);
    list.add_linear("linear2", width, feedforward);
  }
  return list.take();
}

}  // namespace treble
