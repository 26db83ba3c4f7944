#include "cuda/cuda_planner.h"

#include <algorithm>

#include "cuda/choose_linear.h"
#include "cuda/memory_sizes.h"
#include "cuda/scratch.h"

namespace treble::cuda {

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

void CudaPlanner::do_linear(const Linear& args) {
  for (const Linear::Output& output : args.outputs) {
    const bool is_direct =
        args.input.plain.dtype() == DType::kBF16 && !(output.weight->bias && output.out.dtype() == DType::kF32);
    if (is_direct) continue;
    const Workspace::Scope scope(scratch_);
    take_product_scratch(scratch_, args.input.plain, output.out.dtype(), output.out.size(1));
  }
}

void CudaPlanner::do_linear_swiglu(const LinearSwiglu& args) {
  // Loaded weights, and activations of whole rows, are aligned, and up is loaded after gate.
  const SwigluShape shape{activation_dtype(), args.gate->out_features(), args.gate->in_features(), true, true};
  if (choose_swiglu(shape, compute_capability_, options_.kernels) == SwigluKernel::kWgmmaSm90) return;
  const Workspace::Scope scope(scratch_);
  const TensorView both =
      take_swiglu_scratch(scratch_, activation_dtype(), args.input.plain.size(0), args.gate->out_features());
  if (args.input.plain.dtype() == DType::kF32)
    take_product_scratch(scratch_, args.input.plain, both.dtype(), both.size(1));
}

void CudaPlanner::do_gated_delta_rule(const GatedDeltaRule& args) {
  const Workspace::Scope scope(scratch_);
  take_delta_rule_scratch(scratch_, count_delta_rule_chunks(args.cu_seqlens), args.key.size(1), args.value.size(1));
}

}  // namespace treble::cuda
