#include "engine/op_cost.h"

#include <algorithm>
#include <initializer_list>

namespace treble {
namespace {

double bytes_of(std::initializer_list<TensorView> views) {
  double bytes = 0;
  for (const TensorView& view : views) bytes += static_cast<double>(view.num_bytes());
  return bytes;
}

double bytes_of(const LinearInput& input) {
  return bytes_of({input.plain, input.quantized.codes, input.quantized.scale});
}

double bytes_of(const LinearWeight& weight) {
  LinearWeight views = weight;
  double bytes = 0;
  for (const TensorView* view : views.tensors()) bytes += static_cast<double>(view->num_bytes());
  return bytes;
}

double product_flops(std::int64_t rows, const LinearWeight& weight) {
  return 2.0 * static_cast<double>(rows) * static_cast<double>(weight.out_features()) *
         static_cast<double>(weight.in_features());
}

/// Pairs of a query and a key that it reads.
double attended_pairs(const Attention& args) {
  const auto* q = args.cu_seqlens_q.as<std::int32_t>();
  const auto* k = args.cu_seqlens_k.as<std::int32_t>();
  double pairs = 0;
  for (std::int64_t n = 0; n + 1 < args.cu_seqlens_q.size(0); ++n) {
    const double queries = q[n + 1] - q[n], keys = k[n + 1] - k[n];
    pairs += queries * keys - (args.causal ? queries * (queries - 1) / 2 : 0);
  }
  return pairs;
}

/// Rows of a table that an index names, or all rows.
double row_bytes(const TensorView& rows, const TensorView& index) {
  if (!index || rows.size(0) == 0) return bytes_of({rows});
  return bytes_of({rows}) / static_cast<double>(rows.size(0)) * static_cast<double>(index.num_elements());
}

}  // namespace

OpCost cost_of(const Embedding& args) {
  return {row_bytes(args.table, args.ids) + bytes_of({args.ids, args.out}), 0};
}

OpCost cost_of(const RmsNorm& args) {
  return {bytes_of({args.x, args.weight}) + bytes_of(args.out), 0};
}

OpCost cost_of(const Linear& args) {
  OpCost cost{bytes_of(args.input), 0};
  for (const Linear::Output& output : args.outputs) {
    cost.bytes += bytes_of(*output.weight) + bytes_of({output.out});
    cost.flops += product_flops(output.out.size(0), *output.weight);
  }
  return cost;
}

OpCost cost_of(const LinearSwiglu& args) {
  const std::int64_t rows = args.input.num_rows();
  return {bytes_of(args.input) + bytes_of(*args.gate) + bytes_of(*args.up) + bytes_of(args.out),
          product_flops(rows, *args.gate) + product_flops(rows, *args.up)};
}

OpCost cost_of(const RotaryTables& args) {
  return {bytes_of({args.positions, args.cos, args.sin}), 0};
}

OpCost cost_of(const AttentionInputs& args) {
  return {2 * bytes_of({args.query, args.key}) + bytes_of({args.cos, args.sin, args.q_norm, args.k_norm}), 0};
}

OpCost cost_of(const Attention& args) {
  const double width = static_cast<double>(args.query.size(1) * args.query.size(2));  // of all heads
  return {bytes_of({args.query, args.key, args.value, args.gate}) + bytes_of(args.out),
          4 * attended_pairs(args) * width};
}

OpCost cost_of(const DeltaRuleInputs& args) {
  return {bytes_of({args.mixed, args.a, args.b, args.conv_weight, args.A_log, args.dt_bias, args.query, args.key,
                    args.value, args.log_decay, args.beta}) +
              2 * bytes_of({args.conv_state}),
          0};
}

OpCost cost_of(const GatedDeltaRule& args) {
  // Of the rule as it is written, token after token: key S, the outer product added to S, and query S. Chunked kernels
  // compute more.
  const double states = static_cast<double>(args.value.size(0) * args.value.size(1)) *
                        static_cast<double>(args.key.size(2) * args.value.size(2));
  return {bytes_of({args.query, args.key, args.value, args.out, args.log_decay, args.beta}) +
              2 * bytes_of({args.recurrent_state}),
          6 * states};
}

OpCost cost_of(const GatedRmsNorm& args) {
  return {bytes_of({args.x, args.gate, args.weight}) + bytes_of(args.out), 0};
}

OpCost cost_of(const LayerNorm& args) {
  return {bytes_of({args.x, args.delta, args.weight, args.bias}) + (args.delta ? bytes_of({args.x}) : 0) +
              bytes_of(args.out),
          0};
}

OpCost cost_of(const SpanMean& args) {
  const auto* spans = args.spans.as<std::int32_t>();
  double rows = 0;
  for (std::int64_t s = 0; s < args.spans.size(0); ++s) rows += spans[2 * s + 1] - spans[2 * s];
  return {rows * static_cast<double>(args.rows.size(1)) * static_cast<double>(size_of(args.rows.dtype())) +
              bytes_of({args.out}),
          0};
}

OpCost cost_of(const Gelu& args) {
  return {2 * bytes_of({args.x}), 0};
}

OpCost cost_of(const AddRows& args) {
  return {2 * bytes_of({args.x}) + row_bytes(args.rows, args.index), 0};
}

OpCost cost_of(const ScatterRows& args) {
  return {2 * bytes_of({args.rows}), 0};
}

OpCost cost_of(const FillZero& args) {
  return {bytes_of({args.x}), 0};
}

OpCost cost_of(const NormalizePatches& args) {
  return {bytes_of({args.levels, args.out}), 0};
}

OpCost cost_of(const AddInterpolatedRows& args) {
  return {2 * bytes_of({args.x}) + bytes_of({args.table, args.index, args.weights}), 0};
}

OpCost cost_of(const AxialRotaryTables& args) {
  return {bytes_of({args.positions, args.cos, args.sin}), 0};
}

OpCost cost_of(const RotateHeads& args) {
  return {2 * bytes_of({args.query, args.key}) + bytes_of({args.cos, args.sin}), 0};
}

OpCost cost_of(const OptionFeatures& args) {
  return {bytes_of({args.fields, args.options, args.out}), 0};
}

OpCost cost_of(const OptionLogits& args) {
  return {bytes_of({args.fields, args.options, args.anchor, args.lexical, args.residual, args.out}), 0};
}

}  // namespace treble
