#include "model/head.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/host_view.h"

namespace treble {
namespace {

constexpr float kLayerNormEps = 1e-5f;

/// What all layers of the head share.
struct Pass {
  const HeadConfig& config;
  Ops& ops;
  Workspace& workspace;
  std::int64_t rows_at_once;  // of the memory, that go through a product together

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

/// Keys and values of the memory [T, w] -> [T, 2 w], from the workspace.
/// @param norm  of the memory before it is projected, or nullptr
TensorView project_memory(const Pass& pass, const LayerNormWeights* norm, const LinearWeight& key_value,
                          const TensorView& memory) {
  const std::int64_t T = memory.size(0);
  const TensorView out = pass.rows(T, key_value.out_features());
  for (std::int64_t begin = 0; begin < T; begin += pass.rows_at_once) {
    const Workspace::Scope scope(pass.workspace);
    const std::int64_t end = std::min(T, begin + pass.rows_at_once);
    TensorView input = memory.rows(begin, end);
    if (norm) {
      input = pass.rows(end - begin, memory.size(1));
      pass.norm(*norm, memory.rows(begin, end), input);
    }
    pass.apply(key_value, input, out.rows(begin, end));
  }
  return out;
}

/// Pre-norm: the options of a record, all questions together, look for their evidence in the record.
/// options [O, w] in and out; memory [T, w]
void run_evidence_layer(const Pass& pass, const EvidenceLayerWeights& weights, const TensorView& options,
                        const TensorView& cu_options, const TensorView& memory, const TensorView& cu_seqlens) {
  const Workspace::Scope scope(pass.workspace);
  const TensorView normed = pass.rows(options.size(0), options.size(1));
  pass.norm(weights.query_norm, options, normed);
  {
    const Workspace::Scope attention_scope(pass.workspace);
    const TensorView query = pass.rows(options.size(0), pass.config.width);
    pass.apply(weights.attention.query, normed, query);
    const TensorView key_value = project_memory(pass, &weights.memory_norm, weights.attention.key_value, memory);
    pass.add_attention(weights.attention, query, cu_options, key_value, cu_seqlens, options);
  }
  pass.norm(weights.feedforward_norm, options, normed);
  pass.add_feedforward(weights.feedforward_in, weights.feedforward_out, normed, options);
}

/// Pre-norm: the fields of a record look at each other, then at the record.
/// fields [Q, w] in and out; memory [T, w], which this layer does not norm
/// @param known_key_value  [T, 2 w]: the memory's, or empty: they are projected here
void run_decoder_layer(const Pass& pass, const DecoderLayerWeights& weights, const TensorView& fields,
                       const TensorView& cu_questions, const TensorView& memory, const TensorView& known_key_value,
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
  {
    const Workspace::Scope memory_scope(pass.workspace);
    const TensorView memory_key_value =
        known_key_value ? known_key_value : project_memory(pass, nullptr, weights.multihead_attn.key_value, memory);
    pass.apply(weights.multihead_attn.query, normed, query);
    pass.add_attention(weights.multihead_attn, query, cu_questions, memory_key_value, cu_seqlens, fields);
  }
  pass.norm(weights.norm3, fields, normed);
  pass.add_feedforward(weights.linear1, weights.linear2, normed, fields);
}

/// The decoder layers. The memory's keys and values are projections of one input, so one call, where it goes through a
/// product whole; of longer ones a layer's at a time, for all of them would be most of what a record in pieces takes.
/// fields [Q, w] in and out; memory [T, w]
void run_decoder(const Pass& pass, const std::vector<DecoderLayerWeights>& layers, const TensorView& fields,
                 const TensorView& cu_questions, const TensorView& memory, const TensorView& cu_seqlens) {
  const Workspace::Scope scope(pass.workspace);
  std::vector<TensorView> key_values(layers.size());
  if (memory.size(0) <= pass.rows_at_once) {
    std::vector<Linear::Output> outputs;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      key_values[i] = pass.rows(memory.size(0), 2 * pass.config.width);
      outputs.push_back({&layers[i].multihead_attn.key_value, key_values[i]});
    }
    pass.ops.linear({.input = memory, .outputs = outputs});
  }
  for (std::size_t i = 0; i < layers.size(); ++i)
    run_decoder_layer(pass, layers[i], fields, cu_questions, memory, key_values[i], cu_seqlens);
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

/// What the head reads of the records: a memory row per token, and means over the spans, all f32.
struct Reading {
  TensorView memory;              // [T, w]
  TensorView last;                // [N, h]: each record's last token
  TensorView questions, options;  // [Q, h], [O, h]
};

/// A reading's means, from the workspace.
void take_means(const Pass& pass, const PackedBatch& batch, Reading& reading) {
  const std::int64_t h = pass.config.hidden_size;
  reading.last = pass.rows(batch.num_seqs(), h);
  reading.questions = pass.rows(batch.num_questions(), h);
  reading.options = pass.rows(batch.num_options(), h);
}

/// @param normed  [T - first, h] f32: of the tokens from the first that a span holds
void fill_means(const Pass& pass, const PackedBatch& batch, const TensorView& normed, std::int32_t first,
                const Reading& reading) {
  const auto mean = [&](std::vector<std::int32_t> spans, const TensorView& out) {
    for (std::int32_t& border : spans) border -= first;
    pass.ops.span_mean({.rows = normed, .index = {}, .spans = host_view(spans, {out.size(0), 2}), .out = out});
  };
  std::vector<std::int32_t> last_spans;  // [N, 2]
  for (std::size_t i = 1; i < batch.cu_seqlens.size(); ++i) {
    last_spans.push_back(batch.cu_seqlens[i] - 1);
    last_spans.push_back(batch.cu_seqlens[i]);
  }
  mean(last_spans, reading.last);
  mean(batch.question_spans, reading.questions);
  mean(batch.option_spans, reading.options);
}

/// The first token that a span holds; of no spans the last token.
std::int32_t first_spanned(const PackedBatch& batch) {
  std::int32_t first = static_cast<std::int32_t>(batch.total_tokens()) - 1;
  for (const std::vector<std::int32_t>* spans : {&batch.question_spans, &batch.option_spans})
    for (std::size_t i = 0; i < spans->size(); i += 2) first = std::min(first, (*spans)[i]);
  return first;
}

/// @return [O] logits
std::vector<float> decide(const Pass& pass, const Model& model, const PackedBatch& batch, const Reading& reading) {
  const HeadWeights& weights = model.head;
  Ops& ops = pass.ops;
  Workspace& workspace = pass.workspace;
  const std::int64_t N = batch.num_seqs(), Q = batch.num_questions(), O = batch.num_options();
  const std::int64_t h = model.config.head.hidden_size, w = model.config.head.width;
  const TensorView &memory = reading.memory, &asked = reading.questions;

  const TensorView cu_seqlens = host_view(batch.cu_seqlens);
  const TensorView cu_questions = host_view(batch.cu_questions), cu_options = host_view(batch.cu_options);
  const TensorView owner = host_view(batch.option_question), record = host_view(batch.question_record);
  std::vector<std::int32_t> each_question(static_cast<std::size_t>(Q) + 1);  // 0, 1, ... Q
  std::iota(each_question.begin(), each_question.end(), 0);

  const TensorView lexical = pass.rows(O, h);
  ops.span_mean({.rows = model.output_embedding,
                 .index = host_view(batch.input_ids),
                 .spans = host_view(batch.option_spans, {O, 2}),
                 .out = lexical});

  // Options: their place in the record, their own words, their question; then the evidence.
  const TensorView options = pass.rows(O, w);
  pass.apply(weights.option_context_projection, reading.options, options);
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
    pass.apply(weights.global_projection, reading.last, whole);
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

  ops.add_rows(
      {.x = asked, .rows = reading.last, .index = record});  // the anchor: question plus the record's last token
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

}  // namespace

std::vector<float> run_head(const Model& model, const PackedBatch& batch, const TensorView& hidden, Ops& ops,
                            Workspace& workspace) {
  const std::int64_t T = batch.total_tokens();
  const Pass pass{model.config.head, ops, workspace, T};
  const Workspace::Scope scope(workspace);
  Reading reading;
  reading.memory = pass.rows(T, model.config.head.width);
  take_means(pass, batch, reading);
  {
    const Workspace::Scope normed_scope(workspace);
    const TensorView x = pass.rows(T, model.config.head.hidden_size);
    pass.norm(model.head.hidden_norm, hidden, x);
    pass.apply(model.head.memory_projection, x, reading.memory);
    fill_means(pass, batch, x, 0, reading);
  }
  return decide(pass, model, batch, reading);
}

HeadMemory take_head_memory(const Model& model, const PackedBatch& batch, Ops& ops, Workspace& workspace) {
  const std::int64_t T = batch.total_tokens();
  const std::int32_t first = first_spanned(batch);
  return {workspace.take(DType::kF32, {T, model.config.head.width}), first,
          workspace.take(ops.activation_dtype(), {T - first, model.config.head.hidden_size})};
}

void add_to_head_memory(const Model& model, const TensorView& hidden, std::int64_t begin, const HeadMemory& memory,
                        Ops& ops, Workspace& workspace) {
  const std::int64_t end = begin + hidden.size(0);
  const Pass pass{model.config.head, ops, workspace, hidden.size(0)};
  const Workspace::Scope scope(workspace);
  const TensorView x = pass.rows(hidden.size(0), hidden.size(1));
  pass.norm(model.head.hidden_norm, hidden, x);
  pass.apply(model.head.memory_projection, x, memory.rows.rows(begin, end));
  const std::int64_t first = std::max<std::int64_t>(begin, memory.first_spanned);
  if (first >= end) return;
  std::vector<std::int32_t> index(static_cast<std::size_t>(end - first));
  std::iota(index.begin(), index.end(), static_cast<std::int32_t>(first - memory.first_spanned));
  ops.scatter_rows({.rows = hidden.rows(first - begin, end - begin), .index = host_view(index), .x = memory.spanned});
}

std::vector<float> run_head(const Model& model, const PackedBatch& batch, const HeadMemory& memory,
                            std::int64_t rows_at_once, Ops& ops, Workspace& workspace) {
  const Pass pass{model.config.head, ops, workspace, rows_at_once};
  const Workspace::Scope scope(workspace);
  Reading reading;
  reading.memory = memory.rows;
  take_means(pass, batch, reading);
  {
    const Workspace::Scope normed_scope(workspace);
    const TensorView x = pass.rows(memory.spanned.size(0), memory.spanned.size(1));
    pass.norm(model.head.hidden_norm, memory.spanned, x);
    fill_means(pass, batch, x, memory.first_spanned, reading);
  }
  return decide(pass, model, batch, reading);
}

}  // namespace treble
