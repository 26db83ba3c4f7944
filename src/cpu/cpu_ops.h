#pragma once

#include <treble/int8_activations.h>

#include <memory>
#include <span>
#include <vector>

#include "cpu/choose_linear.h"
#include "cpu/int8_blocks.h"
#include "ops/ops.h"

namespace treble::cpu {

class OnednnBf16;

/// Ops on this machine's processor. Vector code is chosen at run time: SSE4, AVX2 or AVX-512, with the products of
/// bf16 and of 8-bit codes that the processor has.
/// Weights are read where they lie, and widened in registers.
class CpuOps final : public Ops {
 public:
  /// @param activation_dtype  f32, or bf16 with the reference's roundings
  /// @param int8_activations  how INT8 Linears quantise their inputs
  /// @param int8_blocks       one that is_supported()
  explicit CpuOps(DType activation_dtype, Int8Activations int8_activations = Int8Activations::kPrecise,
                  Int8Blocks int8_blocks = best_int8_blocks());
  ~CpuOps() override;

  std::string name() const override;
  DType activation_dtype() const override { return activation_dtype_; }
  Memory& memory() override { return host_memory(); }
  TensorView place_weight(const HostWeight& host) override { return host.view; }
  TensorView upload(Workspace&, const TensorView& host) override { return host; }
  void download(const TensorView& source, void* host) override;

 private:
  void do_embedding(const Embedding& args) override;
  void do_rms_norm(const RmsNorm& args) override;
  void do_linear(const Linear& args) override;
  void do_linear_swiglu(const LinearSwiglu& args) override;
  void do_rotary_tables(const RotaryTables& args) override;
  void do_attention_inputs(const AttentionInputs& args) override;
  void do_attention(const Attention& args) override;
  void do_delta_rule_inputs(const DeltaRuleInputs& args) override;
  void do_gated_delta_rule(const GatedDeltaRule& args) override;
  void do_gated_rms_norm(const GatedRmsNorm& args) override;
  void do_layer_norm(const LayerNorm& args) override;
  void do_span_mean(const SpanMean& args) override;
  void do_gelu(const Gelu& args) override;
  void do_add_rows(const AddRows& args) override;
  void do_scatter_rows(const ScatterRows& args) override;
  void do_fill_zero(const FillZero& args) override;
  void do_normalize_patches(const NormalizePatches& args) override;
  void do_add_interpolated_rows(const AddInterpolatedRows& args) override;
  void do_axial_rotary_tables(const AxialRotaryTables& args) override;
  void do_rotate_heads(const RotateHeads& args) override;
  void do_option_features(const OptionFeatures& args) override;
  void do_option_logits(const OptionLogits& args) override;

  LinearKernel kernel_of(const TensorView& input, const LinearWeight& weight) const;
  /// Writes the codes of a producer's output, if an INT8 Linear reads it.
  void quantize(const TensorView& plain, const QuantizedInput& out);
  /// The codes that these Linears read; what the producer did not write is made in scratch memory.
  std::vector<QuantizedInput> quantized_forms(const LinearInput& input, std::span<const LinearWeight* const> weights);
  void swiglu_onednn_bf16(const LinearSwiglu& args);
  /// All outputs as if their epilogue were kStore.
  void multiply(const Linear& args);
  void linear_int8_blocks(std::span<const Linear::Output* const> outputs, std::span<const QuantizedInput> forms);
  void swiglu_int8_blocks(const LinearSwiglu& args);

  DType activation_dtype_;
  Int8Activations int8_activations_;
  Int8Blocks int8_blocks_;
  Workspace scratch_{host_memory()};         // packed tokens and tiles inside one operation
  std::unique_ptr<OnednnBf16> onednn_bf16_;  // null when the processor has no bf16 products
};

}  // namespace treble::cpu
