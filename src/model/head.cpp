#include "model/head.h"

#include <cmath>

#include "model/host_view.h"

namespace treble {
namespace {

constexpr float kLayerNormEps = 1e-5f;

/// What all layers of the head share.
struct Pass {
  const HeadConfig& config;
  Ops& ops;
  Workspace& workspace;

  TensorView rows(std::int64_t count, std::int64_t features) const {
    return workspace.take(DType::kF32, {count, features});
  }

  void norm(const LayerNormWeights& weights, const TensorView& x, const TensorView& out) const {
    ops.layer_norm({.x = x, .weight = weights.weight, .bias = weights.bias, .eps = kLayerNormEps, .out = out});
  }

  void apply(const LinearWeight& weight, const TensorView& input, const TensorView& out,
             Epilogue epilogue = Epilogue::kStore) const {
    ops.linear({.input = input, .outputs = std::array{Linear::Output{&weight, out, epilogue}}});
  }

  /// x += second(gelu(first(input)))
  void add_feedforward(const LinearWeight& first, const LinearWeight& second, const TensorView& input,
                       const TensorView& x) const {
    const Workspace::Scope scope(workspace);
    const TensorView inner = rows(input.size(0), first.out_features());
    apply(first, input, inner, Epilogue::kGelu);
    apply(second, inner, x, Epilogue::kAdd);
  }

  /// x += MHA, each record's rows reading its own memory rows.
  /// query [R, w], key_value [M, 2 w]; the borders of the records in both are cu_query and cu_memory [N + 1]
  void add_attention(const HeadAttentionWeights& weights, const TensorView& query, const TensorView& cu_query,
                     const TensorView& key_value, const TensorView& cu_memory, const TensorView& x) const {
    const Workspace::Scope scope(workspace);
    const std::int64_t w = config.width, heads = config.heads, head_dim = w / heads;
    const std::int64_t num_rows = query.size(0), num_memory = key_value.size(0);
    const TensorView mixed = rows(num_rows, w);
    ops.attention({.query = query.reshape({num_rows, heads, head_dim}),
                   .key = key_value.slice(1, 0, w).reshape({num_memory, heads, head_dim}),
                   .value = key_value.slice(1, w, 2 * w).reshape({num_memory, heads, head_dim}),
                   .gate = {},
                   .cu_seqlens_q = cu_query,
                   .cu_seqlens_k = cu_memory,
                   .causal = false,
                   .scale = 1 / std::sqrt(static_cast<float>(head_dim)),
                   .out = mixed});
    apply(weights.out_proj, mixed, x, Epilogue::kAdd);
  }
};

/// Pre-norm: the options of a record, all questions together, look for their evidence in the record.
/// options [O, w] in and out; memory [T, w]
void run_evidence_layer(const Pass& pass, const EvidenceLayerWeights& weights, const TensorView& options,
                        const TensorView& cu_options, const TensorView& memory, const TensorView& cu_seqlens) {
  const Workspace::Scope scope(pass.workspace);
  const TensorView normed = pass.rows(options.size(0), options.size(1));
  const TensorView evidence = pass.rows(memory.size(0), memory.size(1));
  pass.norm(weights.query_norm, options, normed);
  pass.norm(weights.memory_norm, memory, evidence);
  {
    const Workspace::Scope attention_scope(pass.workspace);
    const std::int64_t w = pass.config.width;
    const TensorView query = pass.rows(options.size(0), w), key_value = pass.rows(memory.size(0), 2 * w);
    pass.apply(weights.attention.query, normed, query);
    pass.apply(weights.attention.key_value, evidence, key_value);
    pass.add_attention(weights.attention, query, cu_options, key_value, cu_seqlens, options);
  }
  pass.norm(weights.feedforward_norm, options, normed);
  pass.add_feedforward(weights.feedforward_in, weights.feedforward_out, normed, options);
}

/// Pre-norm: the fields of a record look at each other, then at the record.
/// fields [Q, w] in and out; memory_key_value [T, 2 w]: the memory, not normed, as this layer reads it
void run_decoder_layer(const Pass& pass, const DecoderLayerWeights& weights, const TensorView& fields,
                       const TensorView& cu_questions, const TensorView& memory_key_value,
                       const TensorView& cu_seqlens) {
  const Workspace::Scope scope(pass.workspace);
  const std::int64_t num_fields = fields.size(0), w = pass.config.width;
  const TensorView normed = pass.rows(num_fields, w), self = pass.rows(num_fields, 3 * w);
  const TensorView query = self.slice(1, 0, w), key_value = self.slice(1, w, 3 * w);
  pass.norm(weights.norm1, fields, normed);
  pass.ops.linear({.input = normed,
                   .outputs = std::array{Linear::Output{&weights.self_attn.query, query},
                                         Linear::Output{&weights.self_attn.key_value, key_value}}});
  pass.add_attention(weights.self_attn, query, cu_questions, key_value, cu_questions, fields);
  pass.norm(weights.norm2, fields, normed);
  pass.apply(weights.multihead_attn.query, normed, query);
  pass.add_attention(weights.multihead_attn, query, cu_questions, memory_key_value, cu_seqlens, fields);
  pass.norm(weights.norm3, fields, normed);
  pass.add_feedforward(weights.linear1, weights.linear2, normed, fields);
}

/// The decoder layers, each with the memory's keys and values: projections of one input, so one call.
/// fields [Q, w] in and out; memory [T, w]
void run_decoder(const Pass& pass, const std::vector<DecoderLayerWeights>& layers, const TensorView& fields,
                 const TensorView& cu_questions, const TensorView& memory, const TensorView& cu_seqlens) {
  const Workspace::Scope scope(pass.workspace);
  std::vector<Linear::Output> key_values;
  for (const DecoderLayerWeights& layer : layers)
    key_values.push_back({&layer.multihead_attn.key_value, pass.rows(memory.size(0), 2 * pass.config.width)});
  pass.ops.linear({.input = memory, .outputs = key_values});
  for (std::size_t i = 0; i < layers.size(); ++i)
    run_decoder_layer(pass, layers[i], fields, cu_questions, key_values[i].out, cu_seqlens);
}

/// out [Q, w] = softmax over the question's own options of (option . query / sqrt(w)), times the options.
void summarise_options(const Pass& pass, const PackedBatch& batch, const TensorView& query, const TensorView& options,
                       const std::vector<std::int32_t>& each_question, const TensorView& out) {
  const std::int64_t w = pass.config.width;
  const TensorView keys = options.reshape({options.size(0), 1, w});
  pass.ops.attention({.query = query.reshape({query.size(0), 1, w}),
                      .key = keys,
                      .value = keys,
                      .gate = {},
                      .cu_seqlens_q = host_view(each_question),
                      .cu_seqlens_k = host_view(batch.cu_question_options),
                      .causal = false,
                      .scale = 1 / std::sqrt(static_cast<float>(w)),
                      .out = out});
}

}  // namespace

std::vector<float> run_head(const Model& model, const PackedBatch& batch, const TensorView& hidden, Ops& ops,
                            Workspace& workspace) {
  const HeadWeights& weights = model.head;
  const Pass pass{model.config.head, ops, workspace};
  const Workspace::Scope scope(workspace);
  const std::int64_t T = batch.total_tokens(), N = batch.num_seqs(), Q = batch.num_questions(), O = batch.num_options();
  const std::int64_t h = model.config.head.hidden_size, w = model.config.head.width;

  const TensorView cu_seqlens = host_view(batch.cu_seqlens);
  const TensorView cu_questions = host_view(batch.cu_questions), cu_options = host_view(batch.cu_options);
  const TensorView owner = host_view(batch.option_question), record = host_view(batch.question_record);
  std::vector<std::int32_t> last_spans, each_question;  // [N, 2]: each record's last token; [Q + 1]: 0, 1, ... Q
  for (std::size_t i = 1; i < batch.cu_seqlens.size(); ++i) {
    last_spans.push_back(batch.cu_seqlens[i] - 1);
    last_spans.push_back(batch.cu_seqlens[i]);
  }
  for (std::int32_t i = 0; i <= static_cast<std::int32_t>(Q); ++i) each_question.push_back(i);

  // What is read of the record: a memory row per token, and means over the spans.
  const TensorView memory = pass.rows(T, w);
  const TensorView last = pass.rows(N, h), asked = pass.rows(Q, h), context = pass.rows(O, h),
                   lexical = pass.rows(O, h);
  {
    const Workspace::Scope normed_scope(workspace);
    const TensorView x = pass.rows(T, h);
    pass.norm(weights.hidden_norm, hidden, x);
    pass.apply(weights.memory_projection, x, memory);
    ops.span_mean({.rows = x, .index = {}, .spans = host_view(last_spans, {N, 2}), .out = last});
    ops.span_mean({.rows = x, .index = {}, .spans = host_view(batch.question_spans, {Q, 2}), .out = asked});
    ops.span_mean({.rows = x, .index = {}, .spans = host_view(batch.option_spans, {O, 2}), .out = context});
  }
  ops.span_mean({.rows = model.output_embedding,
                 .index = host_view(batch.input_ids),
                 .spans = host_view(batch.option_spans, {O, 2}),
                 .out = lexical});

  // Options: their place in the record, their own words, their question; then the evidence.
  const TensorView options = pass.rows(O, w);
  pass.apply(weights.option_context_projection, context, options);
  pass.apply(weights.option_lexical_projection, lexical, options, Epilogue::kAdd);
  {
    const Workspace::Scope question_scope(workspace);
    const TensorView per_question = pass.rows(Q, w);
    pass.apply(weights.option_question_projection, asked, per_question);
    ops.add_rows({.x = options, .rows = per_question, .index = owner});
  }
  for (const EvidenceLayerWeights& layer : weights.evidence_layers)
    run_evidence_layer(pass, layer, options, cu_options, memory, cu_seqlens);

  // Fields: question, summary of its options, the whole record, the type; then each other and the record.
  const TensorView fields = pass.rows(Q, w);
  pass.apply(weights.question_projection, asked, fields);
  {
    const Workspace::Scope summary_scope(workspace);
    const TensorView summary = pass.rows(Q, w), whole = pass.rows(N, w);
    summarise_options(pass, batch, fields, options, each_question, summary);
    pass.norm(weights.option_summary_norm, summary, summary);
    pass.apply(weights.global_projection, last, whole);
    ops.add_rows({.x = fields, .rows = summary, .index = {}});
    ops.add_rows({.x = fields, .rows = whole, .index = record});
    ops.add_rows({.x = fields, .rows = weights.type_embedding, .index = host_view(batch.question_types)});
  }
  run_decoder(pass, weights.layers, fields, cu_questions, memory, cu_seqlens);

  // Scores: do the option's words fit the question, and do field and option agree?
  pass.norm(weights.field_norm, fields, fields);
  pass.norm(weights.option_norm, options, options);
  const TensorView features = pass.rows(O, 4 * w), inner = pass.rows(O, w), residual = pass.rows(O, 1);
  ops.option_features({.fields = fields, .options = options, .owner = owner, .out = features});
  pass.apply(weights.residual_scorer_in, features, inner, Epilogue::kGelu);
  pass.apply(weights.residual_scorer_out, inner, residual);

  ops.add_rows({.x = asked, .rows = last, .index = record});  // the anchor: question plus the record's last token
  const TensorView logits = workspace.take(DType::kF32, {O});
  ops.option_logits({.fields = fields,
                     .options = options,
                     .anchor = asked,
                     .lexical = lexical,
                     .residual = residual,
                     .owner = owner,
                     .prior_scale = weights.prior_scale,
                     .joint_scale = weights.joint_scale,
                     .residual_gate = weights.residual_gate,
                     .out = logits});
  std::vector<float> on_host(static_cast<std::size_t>(O));
  ops.download(logits, on_host.data());
  return on_host;
}

}  // namespace treble
