#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/op_cost.h"
#include "ops/planner.h"

namespace treble {

/// What one kind of operation took.
struct OpTime {
  std::string name;  ///< "rms_norm"; Linears with their sizes and formats: "linear 1024 -> 8192 int8"
  int calls = 0;
  double ms = 0;
  OpCost cost;  ///< of all calls
};

/// Passes everything on to other operations and measures how long each takes. It waits for each: on a device, what
/// would overlap does not, and each time includes a launch.
class ProfiledOps final : public Ops {
 public:
  explicit ProfiledOps(std::unique_ptr<Ops> ops) : ops_(std::move(ops)) {}

  /// Since the last reset, the longest first.
  std::vector<OpTime> times() const;
  void reset() { times_.clear(); }

  std::string name() const override { return ops_->name(); }
  DType activation_dtype() const override { return ops_->activation_dtype(); }
  std::shared_ptr<void> bind_thread() override { return ops_->bind_thread(); }
  Memory& memory() override { return ops_->memory(); }
  TensorView place_weight(const HostWeight& host) override { return ops_->place_weight(host); }
  TensorView place_table(const HostWeight& host) override { return ops_->place_table(host); }
  TensorView upload(Workspace& workspace, const TensorView& host) override { return ops_->upload(workspace, host); }
  void download(const TensorView& source, void* host) override { ops_->download(source, host); }
  void synchronize() override { ops_->synchronize(); }
  std::unique_ptr<Stopwatch> make_stopwatch() override { return ops_->make_stopwatch(); }
  std::unique_ptr<Planner> make_planner() const override { return ops_->make_planner(); }
  std::size_t room() const override { return ops_->room(); }
  HeldMemory held_memory() const override { return ops_->held_memory(); }
  void reserve(const MemoryNeeds& needs) override { ops_->reserve(needs); }
  LinearInput linear_input(Workspace& workspace, std::int64_t num_rows,
                           std::initializer_list<const LinearWeight*> consumers) override {
    return ops_->linear_input(workspace, num_rows, consumers);
  }

 private:
  template <typename Call>
  void measure(std::string op, const OpCost& cost, const Call& call) {
    const auto start = std::chrono::steady_clock::now();
    call();
    ops_->synchronize();
    add(std::move(op), cost,
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  void add(std::string op, const OpCost& cost, double ms);

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

  std::unique_ptr<Ops> ops_;
  std::vector<OpTime> times_;
};

}  // namespace treble
