#pragma once

#include <memory>
#include <span>
#include <string>

#include "cuda/make_cuda_ops.h"
#include "ops/planner.h"
#include "tensor/counting_memory.h"

namespace treble::cuda {

/// The plan of a GPU's memory. It needs no GPU. Where an operation has kernels that take more scratch than others, it
/// counts the most.
class CudaPlanner : public Planner {
 public:
  /// @param compute_capability  of the GPU, 10 times the major number plus the minor one
  explicit CudaPlanner(const CudaOptions& options, int compute_capability = 80)
      : options_(options), compute_capability_(compute_capability) {}

  MemoryNeeds needs() const override;
  std::unique_ptr<Planner> make_planner() const override {
    return std::make_unique<CudaPlanner>(options_, compute_capability_);
  }

  std::string name() const override { return "plan of a GPU's memory"; }
  DType activation_dtype() const override { return options_.activation_dtype; }
  Memory& memory() override { return memory_; }
  TensorView place_weight(const HostWeight& host) override;
  TensorView place_table(const HostWeight& host) override;
  TensorView upload(Workspace& workspace, const TensorView& host) override;
  void download(const TensorView&, void*) override {}

 private:
  bool produces_codes_alone() const override { return true; }
  /// A plain form beside codes that a producer writes in scratch memory.
  void plan_plain(const LinearInput& out, DType dtype);
  void plan_products(const LinearInput& input, std::span<const Linear::Output> outputs);
  void do_attention(const Attention& args) override;
  void do_linear(const Linear& args) override;
  void do_linear_swiglu(const LinearSwiglu& args) override;
  void do_gated_delta_rule(const GatedDeltaRule& args) override;
  void do_embedding(const Embedding&) override {}
  void do_rms_norm(const RmsNorm& args) override;
  void do_rotary_tables(const RotaryTables&) override {}
  void do_attention_inputs(const AttentionInputs&) override {}
  void do_delta_rule_inputs(const DeltaRuleInputs&) override {}
  void do_gated_rms_norm(const GatedRmsNorm& args) override;
  void do_layer_norm(const LayerNorm& args) override;
  void do_span_mean(const SpanMean&) override {}
  void do_gelu(const Gelu&) override {}
  void do_add_rows(const AddRows&) override {}
  void do_scatter_rows(const ScatterRows&) override {}
  void do_fill_zero(const FillZero&) override {}
  void do_normalize_patches(const NormalizePatches&) override {}
  void do_add_interpolated_rows(const AddInterpolatedRows&) override {}
  void do_axial_rotary_tables(const AxialRotaryTables&) override {}
  void do_rotate_heads(const RotateHeads&) override {}
  void do_option_features(const OptionFeatures&) override {}
  void do_option_logits(const OptionLogits&) override {}

  CudaOptions options_;
  int compute_capability_;
  CountingMemory memory_;
  Workspace scratch_{memory_};
  std::size_t weight_bytes_ = 0, table_bytes_ = 0, host_table_bytes_ = 0;
};

}  // namespace treble::cuda
