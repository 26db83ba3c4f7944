#include "model/weights.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

namespace treble {
namespace {

/// Asks a source for tensors below a prefix and hands each to the backend.
class Reader {
 public:
  Reader(WeightSource& source, Ops& ops, Model& model, std::string prefix)
      : source_(source), ops_(ops), model_(model), prefix_(std::move(prefix)) {}

  Reader scope(const std::string& name) const { return Reader(source_, ops_, model_, prefix_ + name + "."); }

  TensorView tensor(const std::string& name, std::initializer_list<std::int64_t> shape) const {
    return place_own(source_.tensor(prefix_ + name, shape));
  }

  /// A table of which a pass reads single rows.
  TensorView table(const std::string& name, std::initializer_list<std::int64_t> shape) const {
    const TensorView host = source_.tensor(prefix_ + name, shape);
    model_.weight_bytes += host.num_bytes();
    return keep(host, ops_.place_table({host, source_.file_range(host)}));
  }

  LinearWeight linear(const std::string& name, std::int64_t out_features, std::int64_t in_features,
                      bool has_bias = false) const {
    LinearWeight host = source_.linear(prefix_ + name, out_features, in_features, has_bias);
    return place_linears<1>({host}).front();
  }

  /// Linears that read one input, [out_features, in_features] each.
  struct Part {
    std::string name;
    std::int64_t out_features;
  };
  template <std::size_t N>
  std::array<LinearWeight, N> linears(const std::array<Part, N>& parts, std::int64_t in_features) const {
    std::array<LinearWeight, N> host;
    for (std::size_t i = 0; i < N; ++i)
      host[i] = source_.linear(prefix_ + parts[i].name, parts[i].out_features, in_features, false);
    return place_linears(host);
  }

  LinearWeight linear_with_bias(const std::string& name, std::int64_t out_features, std::int64_t in_features) const {
    return linear(name, out_features, in_features, true);
  }

  LayerNormWeights layer_norm(const std::string& name, std::int64_t size) const {
    return {tensor(name + ".weight", {size}), tensor(name + ".bias", {size})};
  }

  float scalar(const std::string& name) const { return source_.scalar(prefix_ + name); }

 private:
  /// All weights, then all biases, all scales and so on: those of Linears that read one input may then be one matrix
  /// and one vector each. What parts of a fused projection share is placed once: they quantise their input alike.
  template <std::size_t N>
  std::array<LinearWeight, N> place_linears(const std::array<LinearWeight, N>& host) const {
    std::array<LinearWeight, N> placed = host;
    for (std::size_t kind = 0; kind < LinearWeight().tensors().size(); ++kind) {
      for (std::size_t i = 0; i < N; ++i) {
        const auto is_same = [&](LinearWeight other) {
          const TensorView &one = *other.tensors()[kind], &own = *placed[i].tensors()[kind];
          return own && one.data() == own.data() && one.num_bytes() == own.num_bytes();
        };
        const auto first = std::find_if(host.begin(), host.begin() + i, is_same) - host.begin();
        TensorView& view = *placed[i].tensors()[kind];
        if (static_cast<std::size_t>(first) < i) {
          view = *placed[static_cast<std::size_t>(first)].tensors()[kind];
        } else {
          // A quantised projection may be rows of a tensor that others share.
          view = host[i].format == WeightFormat::kDense ? place_own(view) : place(view);
        }
      }
    }
    for (std::size_t i = 0; i < N; ++i)
      if (host[i].weight.data() != placed[i].weight.data()) source_.release(host[i]);
    return placed;
  }

  TensorView place(const TensorView& host) const {
    if (!host) return host;
    model_.weight_bytes += host.num_bytes();
    return ops_.place_weight({host, source_.file_range(host)});
  }

  TensorView place_own(const TensorView& host) const { return keep(host, place(host)); }

  /// What the backend has copied is read no more.
  TensorView keep(const TensorView& host, const TensorView& placed) const {
    if (host && placed.data() != host.data()) source_.release(host);
    return placed;
  }

  WeightSource& source_;
  Ops& ops_;
  Model& model_;
  std::string prefix_;
};

AttentionWeights read_attention(const Reader& reader, const TextConfig& config) {
  const std::int64_t h = config.hidden_size;
  const std::int64_t query_dim = config.num_attention_heads * config.head_dim;
  const std::int64_t kv_dim = config.num_key_value_heads * config.head_dim;
  const auto [q_proj, k_proj, v_proj] =
      reader.linears<3>({{{"q_proj", 2 * query_dim}, {"k_proj", kv_dim}, {"v_proj", kv_dim}}}, h);
  return {
      .q_proj = q_proj,
      .k_proj = k_proj,
      .v_proj = v_proj,
      .o_proj = reader.linear("o_proj", h, query_dim),
      .q_norm = reader.tensor("q_norm.weight", {config.head_dim}),
      .k_norm = reader.tensor("k_norm.weight", {config.head_dim}),
  };
}

DeltaNetWeights read_delta_net(const Reader& reader, const TextConfig& config) {
  const std::int64_t h = config.hidden_size, heads = config.linear_num_value_heads;
  const std::int64_t conv_dim = config.conv_dim(), taps = config.linear_conv_kernel_dim;
  const auto [in_proj_qkv, in_proj_z, in_proj_b, in_proj_a] = reader.linears<4>(
      {{{"in_proj_qkv", conv_dim}, {"in_proj_z", config.value_dim()}, {"in_proj_b", heads}, {"in_proj_a", heads}}}, h);
  return {
      .in_proj_qkv = in_proj_qkv,
      .in_proj_z = in_proj_z,
      .in_proj_b = in_proj_b,
      .in_proj_a = in_proj_a,
      .out_proj = reader.linear("out_proj", h, config.value_dim()),
      .conv1d = reader.tensor("conv1d.weight", {conv_dim, 1, taps}).reshape({conv_dim, taps}),
      .A_log = reader.tensor("A_log", {heads}),
      .dt_bias = reader.tensor("dt_bias", {heads}),
      .norm = reader.tensor("norm.weight", {config.linear_value_head_dim}),
  };
}

LayerWeights read_layer(const Reader& reader, const TextConfig& config, LayerKind kind) {
  const std::int64_t h = config.hidden_size, inner = config.intermediate_size;
  LayerWeights layer;
  layer.input_layernorm = reader.tensor("input_layernorm.weight", {h});
  if (kind == LayerKind::kAttention)
    layer.mixer = read_attention(reader.scope("self_attn"), config);
  else
    layer.mixer = read_delta_net(reader.scope("linear_attn"), config);
  layer.post_attention_layernorm = reader.tensor("post_attention_layernorm.weight", {h});
  const Reader mlp = reader.scope("mlp");
  const auto [gate_proj, up_proj] = mlp.linears<2>({{{"gate_proj", inner}, {"up_proj", inner}}}, h);
  layer.mlp = {gate_proj, up_proj, mlp.linear("down_proj", h, inner)};
  return layer;
}

BackboneWeights read_backbone(const Reader& reader, const TextConfig& config) {
  BackboneWeights backbone;
  backbone.embed_tokens = reader.table("embed_tokens.weight", {config.vocab_size, config.hidden_size});
  for (std::size_t i = 0; i < config.layer_types.size(); ++i)
    backbone.layers.push_back(read_layer(reader.scope(fmt::format("layers.{}", i)), config, config.layer_types[i]));
  backbone.norm = reader.tensor("norm.weight", {config.hidden_size});
  return backbone;
}

VisionBlockWeights read_vision_block(const Reader& reader, const VisionConfig& config) {
  const std::int64_t D = config.hidden_size, inner = config.intermediate_size;
  return {
      .norm1 = reader.layer_norm("norm1", D),
      .norm2 = reader.layer_norm("norm2", D),
      .qkv = reader.linear_with_bias("attn.qkv", 3 * D, D),
      .proj = reader.linear_with_bias("attn.proj", D, D),
      .fc1 = reader.linear_with_bias("mlp.linear_fc1", inner, D),
      .fc2 = reader.linear_with_bias("mlp.linear_fc2", D, inner),
  };
}

VisionWeights read_vision(const Reader& reader, const VisionConfig& config) {
  using V = VisionConfig;
  const std::int64_t D = config.hidden_size, merged = V::kMergedPatches * D;
  VisionWeights vision;
  // A convolution whose steps are its kernel: one product, its columns in the order of a patch's pixels.
  vision.patch_embed.weight =
      reader.tensor("patch_embed.proj.weight", {D, V::kInChannels, V::kTemporalPatchSize, V::kPatchSize, V::kPatchSize})
          .reshape({D, V::kPatchFeatures});
  vision.patch_embed.bias = reader.tensor("patch_embed.proj.bias", {D});
  vision.pos_embed = reader.tensor("pos_embed.weight", {config.num_position_embeddings, D});
  for (std::int64_t i = 0; i < config.depth; ++i)
    vision.blocks.push_back(read_vision_block(reader.scope(fmt::format("blocks.{}", i)), config));
  vision.merger_norm = reader.layer_norm("merger.norm", D);
  vision.merger_fc1 = reader.linear_with_bias("merger.linear_fc1", merged, merged);
  vision.merger_fc2 = reader.linear_with_bias("merger.linear_fc2", config.out_hidden_size, merged);
  return vision;
}

HeadAttentionWeights read_head_attention(const Reader& reader, std::int64_t w) {
  LinearWeight in_proj;
  in_proj.weight = reader.tensor("in_proj_weight", {3 * w, w});
  in_proj.bias = reader.tensor("in_proj_bias", {3 * w});
  return {in_proj.rows(0, w), in_proj.rows(w, 3 * w), reader.linear_with_bias("out_proj", w, w)};
}

EvidenceLayerWeights read_evidence_layer(const Reader& reader, const HeadConfig& config) {
  const std::int64_t w = config.width, f = config.feedforward;
  return {
      .query_norm = reader.layer_norm("query_norm", w),
      .memory_norm = reader.layer_norm("memory_norm", w),
      .feedforward_norm = reader.layer_norm("feedforward_norm", w),
      .attention = read_head_attention(reader.scope("attention"), w),
      .feedforward_in = reader.linear_with_bias("feedforward.0", f, w),
      .feedforward_out = reader.linear_with_bias("feedforward.3", w, f),
  };
}

DecoderLayerWeights read_decoder_layer(const Reader& reader, const HeadConfig& config) {
  const std::int64_t w = config.width, f = config.feedforward;
  return {
      .norm1 = reader.layer_norm("norm1", w),
      .norm2 = reader.layer_norm("norm2", w),
      .norm3 = reader.layer_norm("norm3", w),
      .self_attn = read_head_attention(reader.scope("self_attn"), w),
      .multihead_attn = read_head_attention(reader.scope("multihead_attn"), w),
      .linear1 = reader.linear_with_bias("linear1", f, w),
      .linear2 = reader.linear_with_bias("linear2", w, f),
  };
}

float capped_exp(float log_scale) {
  return std::exp(std::min(log_scale, std::log(100.0f)));
}

HeadWeights read_head(const Reader& reader, const HeadConfig& config) {
  const std::int64_t w = config.width, h = config.hidden_size;
  HeadWeights head;
  head.hidden_norm = reader.layer_norm("hidden_norm", h);
  head.memory_projection = reader.linear("memory_projection", w, h);
  head.question_projection = reader.linear("question_projection", w, h);
  head.option_question_projection = reader.linear("option_question_projection", w, h);
  head.global_projection = reader.linear("global_projection", w, h);
  head.option_context_projection = reader.linear("option_context_projection", w, h);
  head.option_lexical_projection = reader.linear("option_lexical_projection", w, h);
  head.type_embedding = reader.tensor("type_embedding.weight", {3, w});
  for (std::int64_t i = 0; i < config.routing_layers; ++i)
    head.evidence_layers.push_back(read_evidence_layer(reader.scope(fmt::format("evidence_layers.{}", i)), config));
  head.option_summary_norm = reader.layer_norm("option_summary_norm", w);
  head.field_norm = reader.layer_norm("field_norm", w);
  head.option_norm = reader.layer_norm("option_norm", w);
  for (std::int64_t i = 0; i < config.layers; ++i)
    head.layers.push_back(read_decoder_layer(reader.scope(fmt::format("layers.{}", i)), config));
  head.residual_scorer_in = reader.linear_with_bias("residual_scorer.0", w, 4 * w);
  head.residual_scorer_out = reader.linear_with_bias("residual_scorer.3", 1, w);
  head.prior_scale = capped_exp(reader.scalar("prior_logit_scale"));
  head.joint_scale = capped_exp(reader.scalar("joint_logit_scale"));
  head.residual_gate = 1 / (1 + std::exp(-reader.scalar("residual_gate")));
  return head;
}

}  // namespace

void WeightSource::release(const TensorView&) {}

void WeightSource::release(const LinearWeight&) {}

std::optional<FileRange> WeightSource::file_range(const TensorView&) const {
  return std::nullopt;
}

LinearWeight WeightSource::linear(const std::string& name, std::int64_t out_features, std::int64_t in_features,
                                  bool has_bias) {
  LinearWeight linear;
  linear.weight = tensor(name + ".weight", {out_features, in_features});
  if (has_bias) linear.bias = tensor(name + ".bias", {out_features});
  return linear;
}

Model build_model(const ModelConfig& config, WeightSource& source, Ops& ops) {
  Model model;
  model.config = config;
  model.backbone = read_backbone(Reader(source, ops, model, "text."), config.text);
  if (config.vision && source.has("visual")) add_tower(*config.vision, source, ops, model);
  model.output_embedding =
      config.tie_word_embeddings
          ? model.backbone.embed_tokens
          : Reader(source, ops, model, "").table("lm_head.weight", {config.text.vocab_size, config.text.hidden_size});
  model.head = read_head(Reader(source, ops, model, "head."), config.head);
  return model;
}

void add_tower(const VisionConfig& config, WeightSource& source, Ops& ops, Model& model) {
  model.config.vision = config;
  model.vision = read_vision(Reader(source, ops, model, "visual."), config);
}

}  // namespace treble
