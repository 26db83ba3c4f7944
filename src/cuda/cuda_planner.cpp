#include "cuda/cuda_planner.h"

#include <algorithm>
#include <array>
#include <vector>

#include "cuda/alignment.h"
#include "cuda/borders.h"
#include "cuda/choose_attention.h"
#include "cuda/choose_linear.h"
#include "cuda/choose_quantizer.h"
#include "cuda/few_queries_schedule.h"
#include "cuda/memory_sizes.h"
#include "cuda/scratch.h"

namespace treble::cuda {
namespace {

/// Whether a norm or SwiGLU that reads these writes the codes itself.
template <typename... Views>
bool quantizes_itself(const LinearInput& out, const Views&... read) {
  const bool is_aligned = rows_are_aligned(read..., out.plain, out.quantized.codes);
  return out.quantized &&
         choose_quantizer({out.width(), out.quantized.rotation_group, is_aligned}) == Quantizer::kGroup256;
}

}  // namespace

MemoryNeeds CudaPlanner::needs() const {
  return {.weights = round_up(weight_bytes_, kWeightChunkBytes),
          .tables = table_bytes_,
          .host_tables = host_table_bytes_,
          .scratch = scratch_.peak_bytes()};
}

TensorView CudaPlanner::place_weight(const HostWeight& host) {
  weight_bytes_ += round_up(std::max<std::size_t>(host.view.num_bytes(), 1), kWeightAlignment);
  return host.view;
}

TensorView CudaPlanner::place_table(const HostWeight& host) {
  (options_.tables_on_device ? table_bytes_ : host_table_bytes_) += host.view.num_bytes();
  return options_.tables_on_device ? place_weight(host) : host.view;
}

TensorView CudaPlanner::upload(Workspace& workspace, const TensorView& host) {
  return host.at(workspace.take(host.dtype(), {host.num_elements()}).data());
}

void CudaPlanner::plan_plain(const LinearInput& out, DType dtype) {
  if (!out.plain && out.quantized) scratch_.take(dtype, {out.num_rows(), out.width()});
}

void CudaPlanner::plan_products(const LinearInput& input, std::span<const Linear::Output> outputs) {
  const Workspace::Scope scope(scratch_);
  const std::int64_t num_tokens = input.num_rows(), in_features = input.width();
  const bool is_split = input.plain && input.plain.dtype() == DType::kF32;
  bool has_terms = false;
  std::int64_t num_wide_biases = 0, num_nf4_rows = 0;
  for (const Linear::Output& output : outputs) {
    if (output.weight->format != WeightFormat::kInt8 && output.weight->bias &&
        (is_split || output.out.dtype() == DType::kF32))
      num_wide_biases += output.out.size(1);
    if (output.weight->format == WeightFormat::kNf4) num_nf4_rows += output.out.size(1);
  }
  if (num_wide_biases > 0) take_bias(scratch_, num_wide_biases);
  std::vector<QuantizedInput> codes;
  for (const Linear::Output& output : outputs) {
    const std::int64_t out_features = output.out.size(1);
    if (output.weight->format == WeightFormat::kInt8) {
      const auto serves = [&](const QuantizedInput& form) { return form.serves(*output.weight); };
      if (!serves(input.quantized) && std::none_of(codes.begin(), codes.end(), serves))
        codes.push_back(QuantizedInput::take(scratch_, num_tokens, *output.weight));
      continue;
    }
    const LinearKernel kernel = choose_linear({input.plain.dtype(), num_tokens, out_features, in_features, true});
    const bool reads_terms = is_split && kernel != LinearKernel::kFewRows;
    if (reads_terms && !has_terms) take_terms(scratch_, activation_dtype(), num_tokens, in_features);
    has_terms = has_terms || reads_terms;
    const Workspace::Scope output_scope(scratch_);
    // Outputs side by side are one product.
    if (output.weight->format == WeightFormat::kNf4) take_nf4_rows(scratch_, num_nf4_rows, in_features);
    if (kernel == LinearKernel::kFewRows) continue;
    const bool is_narrow = output.out.dtype() == DType::kBF16;
    const bool is_aside = kernel == LinearKernel::kTiles ? output.epilogue == Epilogue::kAdd : is_split && is_narrow;
    if (is_aside) take_sums(scratch_, num_tokens, out_features);
  }
}

void CudaPlanner::do_linear(const Linear& args) {
  plan_products(args.input, args.outputs);
}

void CudaPlanner::do_linear_swiglu(const LinearSwiglu& args) {
  // Loaded weights, and activations of whole rows, are aligned, and up is loaded after gate.
  const bool is_int8 = read_same_codes(*args.gate, *args.up);
  const bool is_nf4 = are_plain(WeightFormat::kNf4, *args.gate, *args.up);
  const SwigluShape shape{activation_dtype(), is_int8, args.gate->out_features(), args.gate->in_features(), true, true};
  const Workspace::Scope scope(scratch_);
  if ((is_int8 || is_nf4 || are_plain(WeightFormat::kDense, *args.gate, *args.up)) &&
      choose_swiglu(shape, compute_capability_, options_.kernels) == SwigluKernel::kWgmmaSm90) {
    if (is_int8 && !args.input.quantized.serves(*args.gate))
      QuantizedInput::take(scratch_, args.input.num_rows(), *args.gate);
    if (is_nf4) {
      const Workspace::Scope rows(scratch_);
      take_nf4_rows(scratch_, 2 * shape.out_features, shape.in_features);
    }
    return plan_plain(args.out, activation_dtype());
  }
  const std::int64_t width = args.gate->out_features();
  const TensorView both = take_swiglu_scratch(scratch_, activation_dtype(), args.input.num_rows(), width);
  const std::array outputs = {Linear::Output{args.gate, both.slice(1, 0, width)},
                              Linear::Output{args.up, both.slice(1, width, 2 * width)}};
  plan_products(args.input, outputs);
  if (!quantizes_itself(args.out, outputs[0].out, outputs[1].out)) plan_plain(args.out, activation_dtype());
}

void CudaPlanner::do_rms_norm(const RmsNorm& args) {
  if (quantizes_itself(args.out, args.x, args.weight)) return;
  const Workspace::Scope scope(scratch_);
  plan_plain(args.out, args.x.dtype());
}

void CudaPlanner::do_gated_rms_norm(const GatedRmsNorm& args) {
  if (gated_norm_quantizes(args.x.size(2)) && quantizes_itself(args.out, args.x, args.gate, args.weight)) return;
  const Workspace::Scope scope(scratch_);
  plan_plain(args.out, args.x.dtype());
}

void CudaPlanner::do_layer_norm(const LayerNorm& args) {
  const Workspace::Scope scope(scratch_);
  plan_plain(args.out, activation_dtype());
}

void CudaPlanner::do_attention(const Attention& args) {
  const Workspace::Scope scope(scratch_);
  plan_plain(args.out, args.query.dtype());
  const AttentionShape shape{args.query.dtype(), args.query.size(0), args.query.size(2),          true,
                             args.scale > 0,     args.causal,        static_cast<bool>(args.gate)};
  if (choose_attention(shape, compute_capability_, options_.kernels) != AttentionKernel::kFewQueries) return;
  const FewQueriesPlan plan = plan_few_queries(borders_of(args.cu_seqlens_q), borders_of(args.cu_seqlens_k));
  if (!plan.has_parts()) return;
  take_few_queries_scratch(scratch_, std::ssize(plan.tiles) * args.query.size(1) * kFewQueriesPerTile);
}

void CudaPlanner::do_gated_delta_rule(const GatedDeltaRule& args) {
  const Workspace::Scope scope(scratch_);
  take_delta_rule_scratch(scratch_, count_delta_rule_chunks(args.cu_seqlens), args.key.size(1), args.value.size(1));
}

}  // namespace treble::cuda
