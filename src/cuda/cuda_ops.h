#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cuda/check_fits.h"
#include "cuda/choose_delta_rule.h"
#include "cuda/choose_linear.h"
#include "cuda/cublas_lt.h"
#include "cuda/current_device.h"
#include "cuda/device_memory.h"
#include "cuda/handles.h"
#include "cuda/host_staging.h"
#include "cuda/make_cuda_ops.h"
#include "cuda/weight_arena.h"
#include "cuda/weight_upload.h"
#include "ops/ops.h"

namespace treble::cuda {

/// Ops on one NVIDIA GPU. All work goes through one stream, in the order of the calls; only download() waits for it.
/// Weights are copied to the device once; vocabulary tables stay in pinned host memory, which kernels read directly.
class CudaOps final : public Ops {
 public:
  explicit CudaOps(const CudaOptions& options);
  ~CudaOps() override;

  std::string name() const override { return name_; }
  DType activation_dtype() const override { return options_.activation_dtype; }
  std::shared_ptr<void> bind_thread() override;
  Memory& memory() override { return memory_; }
  TensorView place_weight(const HostWeight& host) override;
  TensorView place_table(const HostWeight& host) override;
  TensorView upload(Workspace& workspace, const TensorView& host) override;
  void download(const TensorView& source, void* host) override;
  void synchronize() override;
  std::unique_ptr<Stopwatch> make_stopwatch() override;
  std::unique_ptr<Planner> make_planner() const override;
  void reserve(const MemoryNeeds& needs) override;
  std::size_t room() const override;
  HeldMemory held_memory() const override;

 private:
  bool produces_codes_alone() const override { return true; }

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

  /// What the driver has free, or --memory-limit leaves, bytes.
  DeviceRoom device_room() const;
  /// Some Linears of one input whose weights, scales, biases and outputs lie side by side: one product.
  struct LinearRun {
    const LinearWeight* first;  // its weight, scale and bias are followed by the others'; of NF4, its bias alone
    std::span<const Linear::Output> outputs;  // of all of them
    std::int64_t out_features;
    void* out;
    std::int64_t out_stride;
    DType out_dtype;
    Epilogue epilogue;
  };
  static TensorView output_of(const LinearRun& run, std::int64_t num_tokens);
  static std::vector<LinearRun> merge_outputs(std::span<const Linear::Output> outputs);
  void multiply(const LinearInput& input, std::span<const Linear::Output> outputs);
  TensorView terms_of(const TensorView& input);
  void multiply(const TensorView& input, const TensorView& terms, LinearKernel kernel, const LinearRun& run);
  void multiply_few_rows(const TensorView& input, const LinearRun& run);
  void multiply_tiles(const TensorView& input, const LinearRun& run);
  void multiply_cublas_lt(const TensorView& terms, std::int64_t num_tokens, const LinearRun& run);
  void swiglu_wgmma(const TensorView& input, const LinearWeight& gate, const LinearWeight& up, const TensorView& out);

  /// The form of an input that a weight reads: the producer's, one of `made`, or a new one there, in scratch memory.
  QuantizedInput codes_for(const LinearWeight& weight, const LinearInput& input, std::vector<QuantizedInput>& made);
  void multiply_int8(const QuantizedInput& input, const LinearRun& run);
  /// By slices of the weight, which become bf16 in scratch memory.
  void multiply_nf4(const TensorView& input, const TensorView& terms, LinearKernel kernel, const LinearRun& run);
  void swiglu_nf4_wgmma(const TensorView& input, const LinearWeight& gate, const LinearWeight& up,
                        const TensorView& out);
  /// Writes the codes of a producer's output, if an INT8 Linear reads it.
  void quantize(const TensorView& plain, const QuantizedInput& out);
  /// Where a producer that does not quantise writes: scratch memory where nothing else reads the plain form.
  TensorView plain_of(const LinearInput& out, DType dtype);
  /// Producers that quantise. @return false: sizes or alignment are not what they take, nothing is done
  bool rms_norm_int8(const RmsNorm& args);
  bool gated_rms_norm_int8(const GatedRmsNorm& args);
  void swiglu_int8_wgmma(const QuantizedInput& input, const LinearWeight& gate, const LinearWeight& up,
                         const TensorView& out);
  bool swiglu_int8(const TensorView& gate, const TensorView& up, const LinearInput& out);

  /// The plain form of attention's output.
  void attend(const Attention& args);
  void attention_rows(const Attention& args);
  void attention_few_queries(const Attention& args);
  void attention_mma_sm80(const Attention& args);
  void attention_wgmma_sm90(const Attention& args);
  void delta_rule_steps(const GatedDeltaRule& args);
  void delta_rule_chunks(const GatedDeltaRule& args, DeltaRuleKernel kernel);

  CudaOptions options_;
  std::optional<CurrentDevice> current_;  // while this is made and destroyed: before the members, and after them
  std::string name_;
  int compute_capability_ = 0;      // 10 times the major number, plus the minor one
  int num_sms_ = 0;                 // multiprocessors
  int shared_bytes_per_block_ = 0;  // the most dynamic shared memory that a block may ask for
  DeviceMemory memory_;
  Stream stream_;
  HostStaging staging_;
  Workspace scratch_;  // inside one operation
  CublasLt cublas_lt_;
  WeightArena weights_;
  WeightUpload weight_upload_;
  std::vector<PinnedMemory> tables_;
  std::size_t host_table_bytes_ = 0;
};

}  // namespace treble::cuda
