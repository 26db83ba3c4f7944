#include "engine/profiled_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace treble {
namespace {

std::string_view name_of(WeightFormat format) {
  switch (format) {
    case WeightFormat::kNf4:
      return "nf4";
    case WeightFormat::kInt8:
      return "int8";
    default:
      return "bf16";
  }
}

/// "1024 -> 8192 int8 + 32 bf16"
std::string describe(std::span<const LinearWeight* const> weights) {
  std::string text;
  for (const WeightFormat format : {WeightFormat::kInt8, WeightFormat::kNf4, WeightFormat::kDense}) {
    std::int64_t outputs = 0;
    for (const LinearWeight* weight : weights) outputs += weight->format == format ? weight->out_features() : 0;
    if (outputs > 0) text += fmt::format("{}{} {}", text.empty() ? "" : " + ", outputs, name_of(format));
  }
  return fmt::format("{} -> {}", weights.front()->in_features(), text);
}

}  // namespace

std::vector<OpTime> ProfiledOps::times() const {
  std::vector<OpTime> sorted = times_;
  std::ranges::stable_sort(sorted, [](const OpTime& a, const OpTime& b) { return a.ms > b.ms; });
  return sorted;
}

void ProfiledOps::add(std::string op, const OpCost& cost, double ms) {
  auto found = std::ranges::find(times_, op, &OpTime::name);
  if (found == times_.end()) found = times_.insert(found, OpTime{.name = std::move(op)});
  ++found->calls;
  found->ms += ms;
  found->cost.bytes += cost.bytes;
  found->cost.flops += cost.flops;
}

void ProfiledOps::do_linear(const Linear& args) {
  std::vector<const LinearWeight*> weights;
  for (const Linear::Output& output : args.outputs) weights.push_back(output.weight);
  measure(weights.empty() ? "linear" : "linear " + describe(weights), cost_of(args), [&] { ops_->linear(args); });
}

void ProfiledOps::do_linear_swiglu(const LinearSwiglu& args) {
  measure("linear_swiglu " + describe(std::array{args.gate, args.up}), cost_of(args),
          [&] { ops_->linear_swiglu(args); });
}

void ProfiledOps::do_embedding(const Embedding& args) {
  measure("embedding", cost_of(args), [&] { ops_->embedding(args); });
}

void ProfiledOps::do_rms_norm(const RmsNorm& args) {
  measure("rms_norm", cost_of(args), [&] { ops_->rms_norm(args); });
}

void ProfiledOps::do_rotary_tables(const RotaryTables& args) {
  measure("rotary_tables", cost_of(args), [&] { ops_->rotary_tables(args); });
}

void ProfiledOps::do_attention_inputs(const AttentionInputs& args) {
  measure("attention_inputs", cost_of(args), [&] { ops_->attention_inputs(args); });
}

void ProfiledOps::do_attention(const Attention& args) {
  measure("attention", cost_of(args), [&] { ops_->attention(args); });
}

void ProfiledOps::do_delta_rule_inputs(const DeltaRuleInputs& args) {
  measure("delta_rule_inputs", cost_of(args), [&] { ops_->delta_rule_inputs(args); });
}

void ProfiledOps::do_gated_delta_rule(const GatedDeltaRule& args) {
  measure("gated_delta_rule", cost_of(args), [&] { ops_->gated_delta_rule(args); });
}

void ProfiledOps::do_gated_rms_norm(const GatedRmsNorm& args) {
  measure("gated_rms_norm", cost_of(args), [&] { ops_->gated_rms_norm(args); });
}

void ProfiledOps::do_layer_norm(const LayerNorm& args) {
  measure("layer_norm", cost_of(args), [&] { ops_->layer_norm(args); });
}

void ProfiledOps::do_span_mean(const SpanMean& args) {
  measure("span_mean", cost_of(args), [&] { ops_->span_mean(args); });
}

void ProfiledOps::do_gelu(const Gelu& args) {
  measure("gelu", cost_of(args), [&] { ops_->gelu(args); });
}

void ProfiledOps::do_add_rows(const AddRows& args) {
  measure("add_rows", cost_of(args), [&] { ops_->add_rows(args); });
}

void ProfiledOps::do_scatter_rows(const ScatterRows& args) {
  measure("scatter_rows", cost_of(args), [&] { ops_->scatter_rows(args); });
}

void ProfiledOps::do_fill_zero(const FillZero& args) {
  measure("fill_zero", cost_of(args), [&] { ops_->fill_zero(args); });
}

void ProfiledOps::do_normalize_patches(const NormalizePatches& args) {
  measure("normalize_patches", cost_of(args), [&] { ops_->normalize_patches(args); });
}

void ProfiledOps::do_add_interpolated_rows(const AddInterpolatedRows& args) {
  measure("add_interpolated_rows", cost_of(args), [&] { ops_->add_interpolated_rows(args); });
}

void ProfiledOps::do_axial_rotary_tables(const AxialRotaryTables& args) {
  measure("axial_rotary_tables", cost_of(args), [&] { ops_->axial_rotary_tables(args); });
}

void ProfiledOps::do_rotate_heads(const RotateHeads& args) {
  measure("rotate_heads", cost_of(args), [&] { ops_->rotate_heads(args); });
}

void ProfiledOps::do_option_features(const OptionFeatures& args) {
  measure("option_features", cost_of(args), [&] { ops_->option_features(args); });
}

void ProfiledOps::do_option_logits(const OptionLogits& args) {
  measure("option_logits", cost_of(args), [&] { ops_->option_logits(args); });
}

}  // namespace treble
