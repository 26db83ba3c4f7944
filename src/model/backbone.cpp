#include "model/backbone.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>
#include <variant>
#include <vector>

#include "model/host_view.h"

namespace treble {
namespace {

/// What all layers of one pass share.
struct Pass {
  const TextConfig& config;
  Ops& ops;
  Workspace& workspace;
  std::int64_t total_tokens;
  TensorView cu_seqlens;   // [N + 1]
  TensorView cu_keys;      // [N + 1]: borders of the keys that attention reads
  TensorView prefix_rows;  // [T]: where the tokens stand in their record, if a prefix is kept
  TensorView cos, sin;     // [T, rotary_dim / 2]

  TensorView activations(std::int64_t features) const {
    return workspace.take(ops.activation_dtype(), {total_tokens, features});
  }
};

/// Outputs of Linears that share an input, [T, width] each, side by side in one tensor: a backend whose weights lie so
/// too makes one product of them.
template <std::size_t N>
std::array<TensorView, N> take_side_by_side(const Pass& pass, const std::array<std::int64_t, N>& widths) {
  const TensorView all = pass.activations(std::accumulate(widths.begin(), widths.end(), std::int64_t{0}));
  std::array<TensorView, N> outputs;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < N; ++i) {
    outputs[i] = all.slice(1, begin, begin + widths[i]);
    begin += widths[i];
  }
  return outputs;
}

/// The Linear that ends a layer's half, added to the residual stream: input [T, in_features] -> x [T, h].
void add_to_stream(const Pass& pass, const LinearWeight& weight, const LinearInput& input, const TensorView& x) {
  pass.ops.linear({.input = input, .outputs = std::array{Linear::Output{&weight, x, Epilogue::kAdd}}});
}

/// Linear attention with a recurrent state, [T, h], added to x [T, h].
/// @param kept  of this layer before these tokens, and then after them; or nullptr
void run_mixer(const Pass& pass, const DeltaNetWeights& weights, const KeptOfLayer* kept, const LinearInput& input,
               const TensorView& x) {
  const TextConfig& config = pass.config;
  const std::int64_t T = pass.total_tokens;
  const std::int64_t k_heads = config.linear_num_key_heads, v_heads = config.linear_num_value_heads;
  const std::int64_t k_dim = config.linear_key_head_dim, v_dim = config.linear_value_head_dim;
  const KeptStates states = kept ? std::get<KeptStates>(*kept) : KeptStates{};

  const auto [mixed, z, b, a] = take_side_by_side<4>(pass, {config.conv_dim(), config.value_dim(), v_heads, v_heads});
  pass.ops.linear(
      {.input = input,
       .outputs = std::array{Linear::Output{&weights.in_proj_qkv, mixed}, Linear::Output{&weights.in_proj_z, z},
                             Linear::Output{&weights.in_proj_b, b}, Linear::Output{&weights.in_proj_a, a}}});

  const TensorView query = pass.activations(config.key_dim()).reshape({T, k_heads, k_dim});
  const TensorView key = pass.activations(config.key_dim()).reshape({T, k_heads, k_dim});
  const TensorView value = pass.activations(config.value_dim()).reshape({T, v_heads, v_dim});
  const TensorView log_decay = pass.workspace.take(DType::kF32, {T, v_heads});
  const TensorView beta = pass.workspace.take(DType::kF32, {T, v_heads});
  pass.ops.delta_rule_inputs({.mixed = mixed,
                              .a = a,
                              .b = b,
                              .conv_weight = weights.conv1d,
                              .A_log = weights.A_log,
                              .dt_bias = weights.dt_bias,
                              .conv_state = states.conv_state,
                              .cu_seqlens = pass.cu_seqlens,
                              .query = query,
                              .key = key,
                              .value = value,
                              .log_decay = log_decay,
                              .beta = beta});

  const TensorView heads_out = pass.activations(config.value_dim()).reshape({T, v_heads, v_dim});
  pass.ops.gated_delta_rule({.query = query,
                             .key = key,
                             .value = value,
                             .out = heads_out,
                             .log_decay = log_decay,
                             .beta = beta,
                             .recurrent_state = states.recurrent_state,
                             .cu_seqlens = pass.cu_seqlens,
                             .scale = 1 / std::sqrt(static_cast<float>(k_dim))});

  const LinearInput gated = pass.ops.linear_input(pass.workspace, T, {&weights.out_proj});
  pass.ops.gated_rms_norm({.x = heads_out,
                           .gate = z.reshape({T, v_heads, v_dim}),
                           .weight = weights.norm,
                           .eps = config.rms_norm_eps,
                           .out = gated});
  add_to_stream(pass, weights.out_proj, gated, x);
}

/// Keys and values of these tokens [T, width] behind those of the record's tokens before them.
/// @return all of them, [tokens read, width]
TensorView append(const Pass& pass, const KeptKeyValues& kept, const TensorView& key_value) {
  pass.ops.scatter_rows({.rows = key_value, .index = pass.prefix_rows, .x = kept.rows});
  return kept.rows.rows(0, pass.cu_keys.as<std::int32_t>()[1]);
}

/// Causal grouped-query attention whose output is gated before o_proj, [T, h], added to x [T, h].
/// @param kept  of this layer, to which these tokens are added; or nullptr
void run_mixer(const Pass& pass, const AttentionWeights& weights, const KeptOfLayer* kept, const LinearInput& input,
               const TensorView& x) {
  const TextConfig& config = pass.config;
  const std::int64_t T = pass.total_tokens, head_dim = config.head_dim;
  const std::int64_t q_heads = config.num_attention_heads, kv_heads = config.num_key_value_heads;

  const std::int64_t kv_width = kv_heads * head_dim;
  const auto [query_and_gate, key_value] = take_side_by_side<2>(pass, {q_heads * 2 * head_dim, 2 * kv_width});
  const TensorView key = key_value.slice(1, 0, kv_width), value = key_value.slice(1, kv_width, 2 * kv_width);
  pass.ops.linear(
      {.input = input,
       .outputs = std::array{Linear::Output{&weights.q_proj, query_and_gate}, Linear::Output{&weights.k_proj, key},
                             Linear::Output{&weights.v_proj, value}}});

  // Head by head: the query's features, then the gate's.
  const TensorView per_head = query_and_gate.reshape({T, q_heads, 2 * head_dim});
  const TensorView query = per_head.slice(2, 0, head_dim), gate = per_head.slice(2, head_dim, 2 * head_dim);
  pass.ops.attention_inputs({.query = query,
                             .key = key.reshape({T, kv_heads, head_dim}),
                             .q_norm = weights.q_norm,
                             .k_norm = weights.k_norm,
                             .cos = pass.cos,
                             .sin = pass.sin,
                             .eps = config.rms_norm_eps});

  const LinearInput gated = pass.ops.linear_input(pass.workspace, T, {&weights.o_proj});
  const TensorView known = kept ? append(pass, std::get<KeptKeyValues>(*kept), key_value) : key_value;
  const std::int64_t num_keys = known.size(0);
  pass.ops.attention({.query = query,
                      .key = known.slice(1, 0, kv_width).reshape({num_keys, kv_heads, head_dim}),
                      .value = known.slice(1, kv_width, 2 * kv_width).reshape({num_keys, kv_heads, head_dim}),
                      .gate = gate,
                      .cu_seqlens_q = pass.cu_seqlens,
                      .cu_seqlens_k = pass.cu_keys,
                      .causal = true,
                      .scale = 1 / std::sqrt(static_cast<float>(head_dim)),
                      .out = gated});
  add_to_stream(pass, weights.o_proj, gated, x);
}

/// SwiGLU, [T, h], added to x [T, h].
void run_mlp(const Pass& pass, const MlpWeights& weights, const LinearInput& input, const TensorView& x) {
  const LinearInput inner = pass.ops.linear_input(pass.workspace, pass.total_tokens, {&weights.down_proj});
  pass.ops.linear_swiglu({.input = input, .gate = &weights.gate_proj, .up = &weights.up_proj, .out = inner});
  add_to_stream(pass, weights.down_proj, inner, x);
}

/// The Linears that read a layer's first norm decide its output's form.
LinearInput mixer_input(const Pass& pass, const LayerWeights& layer) {
  if (const auto* delta_net = std::get_if<DeltaNetWeights>(&layer.mixer))
    return pass.ops.linear_input(
        pass.workspace, pass.total_tokens,
        {&delta_net->in_proj_qkv, &delta_net->in_proj_z, &delta_net->in_proj_b, &delta_net->in_proj_a});
  const auto& attention = std::get<AttentionWeights>(layer.mixer);
  return pass.ops.linear_input(pass.workspace, pass.total_tokens,
                               {&attention.q_proj, &attention.k_proj, &attention.v_proj});
}

/// Tables of the batch's positions, shared by all attention layers: cos, sin [T, rotary_dim / 2].
std::pair<TensorView, TensorView> make_rotary_tables(const TextConfig& config, const PackedBatch& batch, Ops& ops,
                                                     Workspace& workspace) {
  const std::int64_t T = batch.total_tokens(), frequencies = config.rotary_dim() / 2;
  const TensorView cos = workspace.take(ops.activation_dtype(), {T, frequencies});
  const TensorView sin = workspace.take(ops.activation_dtype(), {T, frequencies});
  ops.rotary_tables({.positions = ops.upload(workspace, host_view(batch.positions, {3, T})),
                     .theta = config.rope_theta,
                     .section = config.mrope_section,
                     .cos = cos,
                     .sin = sin});
  return {cos, sin};
}

void check_fits(const Prefix& prefix, const PackedBatch& batch) {
  if (batch.num_seqs() != 1)
    throw Error(ErrorCode::kInternal, fmt::format("backbone: a prefix of {} records, expected 1", batch.num_seqs()));
  for (const KeptOfLayer& kept : prefix.layers) {
    const auto* key_values = std::get_if<KeptKeyValues>(&kept);
    if (key_values && key_values->rows.size(0) < prefix.num_tokens + batch.total_tokens())
      throw Error(ErrorCode::kInternal, fmt::format("backbone: {} tokens behind {}, expected at most {} in all",
                                                    batch.total_tokens(), prefix.num_tokens, key_values->rows.size(0)));
  }
}

}  // namespace

TensorView run_backbone(const Model& model, const PackedBatch& batch, const TensorView& media_features, Ops& ops,
                        Workspace& workspace, const Trace& trace, Prefix* prefix) {
  const TextConfig& config = model.config.text;
  const BackboneWeights& weights = model.backbone;
  const std::int64_t T = batch.total_tokens();
  const TensorView hidden = workspace.take(ops.activation_dtype(), {T, config.hidden_size});

  const Workspace::Scope scope(workspace);
  const auto [cos, sin] = make_rotary_tables(config, batch, ops, workspace);
  std::vector<std::int32_t> cu_keys = batch.cu_seqlens, prefix_rows;
  if (prefix) {
    check_fits(*prefix, batch);
    cu_keys.back() += static_cast<std::int32_t>(prefix->num_tokens);
    prefix_rows.resize(static_cast<std::size_t>(T));
    std::iota(prefix_rows.begin(), prefix_rows.end(), static_cast<std::int32_t>(prefix->num_tokens));
  }
  const Pass pass{config, ops, workspace, T, host_view(batch.cu_seqlens), host_view(cu_keys), host_view(prefix_rows),
                  cos,    sin};
  const TensorView x = pass.activations(config.hidden_size);  // the residual stream

  ops.embedding({.ids = ops.upload(workspace, host_view(batch.input_ids)), .table = weights.embed_tokens, .out = x});
  if (trace) trace("embed", x);
  if (media_features) ops.scatter_rows({.rows = media_features, .index = host_view(batch.media_tokens), .x = x});

  for (std::size_t i = 0; i < weights.layers.size(); ++i) {
    const LayerWeights& layer = weights.layers[i];
    {
      const Workspace::Scope mixer_scope(workspace);
      const LinearInput input = mixer_input(pass, layer);
      ops.rms_norm({.x = x, .weight = layer.input_layernorm, .eps = config.rms_norm_eps, .out = input});
      const KeptOfLayer* kept = prefix ? &prefix->layers[i] : nullptr;
      std::visit([&](const auto& mixer) { run_mixer(pass, mixer, kept, input, x); }, layer.mixer);
    }
    if (trace) trace(fmt::format("layer{:02}.mixer", i), x);
    {
      const Workspace::Scope mlp_scope(workspace);
      const LinearInput input = ops.linear_input(workspace, T, {&layer.mlp.gate_proj, &layer.mlp.up_proj});
      ops.rms_norm({.x = x, .weight = layer.post_attention_layernorm, .eps = config.rms_norm_eps, .out = input});
      run_mlp(pass, layer.mlp, input, x);
    }
    if (trace) trace(fmt::format("layer{:02}.out", i), x);
  }
  ops.rms_norm({.x = x, .weight = weights.norm, .eps = config.rms_norm_eps, .out = hidden});
  if (prefix) prefix->num_tokens += T;
  return hidden;
}

}  // namespace treble
