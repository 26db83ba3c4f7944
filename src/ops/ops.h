#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/mapped_file.h"
#include "ops/stopwatch.h"
#include "quant/linear_weight.h"
#include "tensor/tensor_view.h"
#include "tensor/workspace.h"

// Every operation the model needs. A backend implements them; the model is written once, against this.
//
// Notation: T tokens of the batch, N sequences in it, h hidden_size. "act" is the backend's activation dtype, f32 or
// bf16; arithmetic is fp32 throughout. In bf16, results are rounded where docs/model.md marks it. Views must not
// overlap unless it says so. All calls are in order: a call sees what earlier calls wrote.

namespace treble {

/// An activation as INT8 Linears read it: rotated, and 8-bit codes of it with one scale a row.
struct QuantizedInput {
  TensorView codes;                 ///< [T, in_features] i8
  TensorView scale;                 ///< [T] f32; NaN for a row that is not finite
  std::int64_t rotation_group = 1;  ///< as in quant/int8.h
  TensorView input_factor;          ///< as in quant/int8.h

  explicit operator bool() const { return static_cast<bool>(codes); }
  /// Whether a Linear of that weight may read it.
  bool serves(const LinearWeight& weight) const;
  QuantizedInput rows(std::int64_t begin, std::int64_t end) const;
  /// Memory for the input of such a Linear.
  static QuantizedInput take(Workspace& workspace, std::int64_t num_rows, const LinearWeight& weight);
};

/// An activation that Linears read, in the forms they want it: what a producer (a norm, SwiGLU, attention) writes.
/// Ops::linear_input() chooses the forms from the consumers' weights, so that a backend can let the producer rotate and
/// quantise in the same pass without the model knowing.
struct LinearInput {
  TensorView plain;          ///< [T, in_features] act or f32; or empty, if all that read it take `quantized`
  QuantizedInput quantized;  ///< of the same values, or empty: no INT8 Linear reads it

  LinearInput() = default;
  LinearInput(TensorView view) : plain(view) {}

  std::int64_t num_rows() const { return (plain ? plain : quantized.codes).size(0); }
  std::int64_t width() const { return (plain ? plain : quantized.codes).size(1); }
};

/// Rows of the vocabulary table.
struct Embedding {
  TensorView ids;    // [T] i32, each in [0, vocab_size)
  TensorView table;  // [vocab_size, h] bf16
  TensorView out;    // [T, h] act
};

/// Zero-centred RMSNorm:  out = x / sqrt(mean(x^2) + eps) * (1 + weight), one rounding.
struct RmsNorm {
  TensorView x;       // [T, h] act
  TensorView weight;  // [h] bf16, the gain minus one
  float eps;
  LinearInput out;  // [T, h]
};

/// What becomes of a product.
enum class Epilogue {
  kStore,  ///< out = product
  kAdd,    ///< out += product, rounded; a backend may round the product too before it adds it
  kGelu,   ///< out = gelu(product), the product rounded like out; the exact form
};

/// Several Linears that read one input: out_i = input W_i^T + bias_i, accumulated in fp32 and rounded once.
/// Where act is bf16, a backend may read 16 bits of an fp32 input instead of 24.
struct Linear {
  struct Output {
    const LinearWeight* weight;
    TensorView out;  // [T, out_features] act or f32, rows may be strided
    Epilogue epilogue = Epilogue::kStore;
  };
  LinearInput input;  // [T, in_features]
  std::span<const Output> outputs;
};

/// First half of the MLP: out = silu(input W_gate^T) * (input W_up^T).
struct LinearSwiglu {
  LinearInput input;  // [T, h]
  const LinearWeight* gate;
  const LinearWeight* up;  // both [intermediate_size, h]
  LinearInput out;         // [T, intermediate_size]
};

/// Tables of the partial, interleaved M-RoPE: the angle of frequency i is positions[axis(i)] * theta^(-2i /
/// rotary_dim).
struct RotaryTables {
  TensorView positions;  // [3, T] i32: time, height, width
  float theta;
  std::array<std::int32_t, 3> section;  // frequencies per axis; axis(i) is i % 3 while i < 3 * section, else time
  TensorView cos, sin;                  // [T, rotary_dim / 2] act
};

/// Per-head zero-centred RMSNorm of query and key, then rotary embedding of their first rotary_dim features
/// (feature i pairs with i + rotary_dim / 2). In place.
struct AttentionInputs {
  TensorView query;           // [T, num_q_heads, head_dim] act, may be strided
  TensorView key;             // [T, num_kv_heads, head_dim] act, may be strided
  TensorView q_norm, k_norm;  // [head_dim] bf16, gains minus one
  TensorView cos, sin;        // [T, rotary_dim / 2] act
  float eps;
};

/// Softmax attention over packed sequences, without a score matrix in memory.
/// Query heads share key/value heads in consecutive groups. Queries are the last rows of their sequence: query row i of
/// L_q, with L_k keys, sits at position L_k - L_q + i, and with `causal` reads the keys up to and including that
/// position.
struct Attention {
  TensorView query;       // [T_q, num_q_heads, head_dim] act or f32, may be strided
  TensorView key, value;  // [T_k, num_kv_heads, head_dim], same dtype, may be strided
  TensorView gate;        // [T_q, num_q_heads, head_dim], may be strided, or empty: out is multiplied by sigmoid(gate)
  TensorView cu_seqlens_q;  // [N + 1] i32 in host memory, first 0, last T_q
  TensorView cu_seqlens_k;  // [N + 1] i32 in host memory, first 0, last T_k
  bool causal;
  float scale;
  LinearInput out;  // [T_q, num_q_heads * head_dim]
};

/// What the gated delta rule reads, from the raw projections: depthwise causal convolution over time and SiLU of
/// `mixed`, split into query, key (L2-normalised per head, eps 1e-6 on the sum) and value; and the two gates
///     beta = sigmoid(b),   log_decay = -exp(A_log) softplus(a + dt_bias).
struct DeltaRuleInputs {
  TensorView mixed;           // [T, conv_dim] act: query, key, value channels, each head-major
  TensorView a, b;            // [T, num_v_heads] act
  TensorView conv_weight;     // [conv_dim, conv_kernel_size] bf16; the last tap meets the current token
  TensorView A_log, dt_bias;  // [num_v_heads] bf16
  TensorView conv_state;      // [N, conv_dim, conv_kernel_size - 1] act, in: mixed before the first token, out: of the
                              // last tokens; empty: starts from zero and is not kept
  TensorView cu_seqlens;      // [N + 1] i32 in host memory
  TensorView query, key;      // out: [T, num_k_heads, key_head_dim] act
  TensorView value;           // out: [T, num_v_heads, value_head_dim] act
  TensorView log_decay;       // out: [T, num_v_heads] f32, natural log, <= 0
  TensorView beta;            // out: [T, num_v_heads] f32, in (0, 1)
};

/// Gated delta rule over packed sequences, chunked for prefill. Per value head, for each token t:
///     S = exp(log_decay_t) S;   S += key_t^T (beta_t (value_t - key_t S));   out_t = scale query_t S
/// Value head n reads key head n / (num_v_heads / num_k_heads). Source: arXiv:2412.06464.
struct GatedDeltaRule {
  TensorView query, key;       // [T, num_k_heads, key_head_dim] act, L2-normalised
  TensorView value, out;       // [T, num_v_heads, value_head_dim] act
  TensorView log_decay, beta;  // [T, num_v_heads] f32
  TensorView recurrent_state;  // [N, num_v_heads, key_head_dim, value_head_dim] f32, in: initial, out: final;
                               // empty: starts from zero and is not kept
  TensorView cu_seqlens;       // [N + 1] i32 in host memory, first 0, last T
  float scale;                 // usually 1 / sqrt(key_head_dim)
};

/// Per-head RMSNorm with a plain gain, then the gate: out = x / sqrt(mean(x^2) + eps) * weight * silu(gate).
struct GatedRmsNorm {
  TensorView x, gate;  // [T, num_v_heads, value_head_dim] act
  TensorView weight;   // [value_head_dim] bf16, the gain itself
  float eps;
  LinearInput out;  // [T, num_v_heads * value_head_dim]
};

/// Residual add and LayerNorm with biased variance:  x += delta, rounded once;  out = layer norm of x. out may be x.
struct LayerNorm {
  TensorView x;             // [R, h] act or f32; in and out where there is a delta
  TensorView delta;         // [R, h] like x, or empty: x stays as it is
  TensorView weight, bias;  // [h] bf16
  float eps;
  LinearInput out;  // [R, h] act or f32
};

/// Means of row ranges, in fp32.
struct SpanMean {
  TensorView rows;   // [R, h] bf16 or f32
  TensorView index;  // [T] i32 in host memory, or empty: span positions name index[t] instead of t
  TensorView spans;  // [S, 2] i32 in host memory: begin, end, not empty
  TensorView out;    // [S, h] f32
};

enum class GeluForm { kErf, kTanh };

/// In place.
struct Gelu {
  TensorView x;  // [R, w] act or f32
  GeluForm form;
};

/// x[i] += rows[index[i]], in fp32, rounded once.
struct AddRows {
  TensorView x;      // [R, w] act or f32
  TensorView rows;   // [R', w] f32 or bf16
  TensorView index;  // [R] i32 in host memory, or empty: row i itself
};

/// x[index[i]] = rows[i]. Rows that the index does not name stay.
struct ScatterRows {
  TensorView rows;   // [R, h] act
  TensorView index;  // [R] i32 in host memory, each in [0, T)
  TensorView x;      // [T, h] act
};

/// x = 0: states before the first token.
struct FillZero {
  TensorView x;  // contiguous; f32 or bf16
};

/// What the vision tower reads, from the 8-bit levels of an image's or a clip's patches: out = (level - mean) /
/// deviation, each step in fp32. A patch has two frames; levels of one fill both.
struct NormalizePatches {
  TensorView levels;               // [R, 3, 1 or 2, p] u8: patches, channels, frames, pixels
  std::array<float, 3> mean;       // of each channel, in levels
  std::array<float, 3> deviation;  // alike, not 0
  TensorView out;                  // [R, 3, 2, p] act
};

/// The vision tower's position embedding, a weighted sum of table rows:  x[r] += sum_k weights[r, k] table[index[r,
/// k]]. The sum of the taps is rounded, then what it is added to.
struct AddInterpolatedRows {
  TensorView x;        // [R, w] act, in and out
  TensorView table;    // [P, w] bf16
  TensorView index;    // [R, 4] i32 in host memory, each in [0, P)
  TensorView weights;  // [R, 4] f32 in host memory
};

/// Tables of the vision tower's rotary embedding. The first half of the frequencies turns with the row, the second with
/// the column: of n of them for each axis, the angle of frequency j is position * theta^(-j / n).
struct AxialRotaryTables {
  TensorView positions;  // [2, R] i32 in host memory: row, column
  float theta;
  TensorView cos, sin;  // [R, head_dim / 2] f32
};

/// Rotary embedding of whole heads: feature i pairs with i + head_dim / 2. In place, one rounding.
struct RotateHeads {
  TensorView query, key;  // [R, num_heads, head_dim] act, may be strided
  TensorView cos, sin;    // [R, head_dim / 2] f32
};

/// What the residual scorer reads of a field and one of its options: [F, R, F * R, |F - R|].
struct OptionFeatures {
  TensorView fields;   // [Q, w] f32
  TensorView options;  // [O, w] f32
  TensorView owner;    // [O] i32 in host memory: the option's question
  TensorView out;      // [O, 4 w] f32
};

/// out = prior_scale cos(lexical, anchor) + residual_gate (joint_scale cos(field, option) + residual).
/// Norms are floored at 1e-12 in the first cosine and at 1e-8 in the second.
struct OptionLogits {
  TensorView fields, options;  // [Q, w], [O, w] f32
  TensorView anchor, lexical;  // [Q, h], [O, h] f32
  TensorView residual;         // [O, 1] f32
  TensorView owner;            // [O] i32 in host memory
  float prior_scale, joint_scale, residual_gate;
  TensorView out;  // [O] f32
};

/// A weight before a backend takes it.
struct HostWeight {
  TensorView view;                ///< contiguous, in host memory that outlives the model unless the backend copies it
  std::optional<FileRange> file;  ///< where the same bytes are in a file, if they are in one

  HostWeight(const TensorView& host) : view(host) {}
  HostWeight(const TensorView& host, const std::optional<FileRange>& range) : view(host), file(range) {}
};

/// What a backend holds beside the activations between operations, bytes.
struct HeldMemory {
  std::size_t weights = 0;      ///< in the device's memory
  std::size_t host_tables = 0;  ///< vocabulary tables in pinned host memory
  std::size_t scratch = 0;      ///< inside operations
  std::size_t other = 0;        ///< the libraries' and the indices'
};

class Planner;
struct MemoryNeeds;

/// The operations. Each call checks shapes and dtypes once (kInternal if they do not fit) and passes on to the backend.
/// One thread at a time; another than before calls bind_thread() first.
class Ops {
 public:
  virtual ~Ops() = default;

  /// The device and the vector code in use, e.g. "cpu (AVX2)": for reports.
  virtual std::string name() const = 0;
  /// f32 or bf16: the type of the activations between operations.
  virtual DType activation_dtype() const = 0;
  /// A thread that makes calls holds what this returns until it has made them.
  virtual std::shared_ptr<void> bind_thread() { return nullptr; }
  /// Where activations live.
  virtual Memory& memory() = 0;
  /// A weight as the backend reads it. May return the view itself.
  virtual TensorView place_weight(const HostWeight& host) = 0;
  /// The same for a table of which a pass reads single rows; a backend may leave it in host memory.
  virtual TensorView place_table(const HostWeight& host) { return place_weight(host); }
  /// Copies host data into memory that the operations can read; may return the view itself.
  virtual TensorView upload(Workspace& workspace, const TensorView& host) = 0;
  /// Copies a contiguous result to the host, after all calls before it.
  virtual void download(const TensorView& source, void* host) = 0;
  /// Of a backend whose memory is sized before a model is loaded: operations that tell how much it will be.
  /// nullptr: memory is taken as passes need it.
  virtual std::unique_ptr<Planner> make_planner() const;
  /// Takes the scratch memory of a plan, after checking that weights and activations will fit beside it.
  /// @throws Error kDevice: they do not; it says what is needed, what is free and what to change
  virtual void reserve(const MemoryNeeds& needs);
  /// Bytes that weights, activations and scratch may take beside what they have taken already, as the device and its
  /// options are now. The largest number for a backend that has only the host's memory.
  virtual std::size_t room() const { return std::numeric_limits<std::size_t>::max(); }
  /// Zeros for a backend that reads weights where they are and has only the host's memory.
  virtual HeldMemory held_memory() const { return {}; }
  /// Returns when all calls before it are done: for measurements.
  virtual void synchronize() {}
  /// Of what a device does, not of the calls that ask for it.
  virtual std::unique_ptr<Stopwatch> make_stopwatch() { return std::make_unique<HostStopwatch>(); }

  /// Memory for the input of these Linears, in the forms that their formats and the backend want.
  virtual LinearInput linear_input(Workspace& workspace, std::int64_t num_rows,
                                   std::initializer_list<const LinearWeight*> consumers);

  void embedding(const Embedding& args);
  void rms_norm(const RmsNorm& args);
  void linear(const Linear& args);
  void linear_swiglu(const LinearSwiglu& args);
  void rotary_tables(const RotaryTables& args);
  void attention_inputs(const AttentionInputs& args);
  void attention(const Attention& args);
  void delta_rule_inputs(const DeltaRuleInputs& args);
  void gated_delta_rule(const GatedDeltaRule& args);
  void gated_rms_norm(const GatedRmsNorm& args);
  void layer_norm(const LayerNorm& args);
  void span_mean(const SpanMean& args);
  void gelu(const Gelu& args);
  void add_rows(const AddRows& args);
  void scatter_rows(const ScatterRows& args);
  void fill_zero(const FillZero& args);
  void normalize_patches(const NormalizePatches& args);
  void add_interpolated_rows(const AddInterpolatedRows& args);
  void axial_rotary_tables(const AxialRotaryTables& args);
  void rotate_heads(const RotateHeads& args);
  void option_features(const OptionFeatures& args);
  void option_logits(const OptionLogits& args);

 private:
  /// Whether producers need no plain form where all Linears that read it take the quantised one.
  virtual bool produces_codes_alone() const { return false; }

  virtual void do_embedding(const Embedding& args) = 0;
  virtual void do_rms_norm(const RmsNorm& args) = 0;
  virtual void do_linear(const Linear& args) = 0;
  virtual void do_linear_swiglu(const LinearSwiglu& args) = 0;
  virtual void do_rotary_tables(const RotaryTables& args) = 0;
  virtual void do_attention_inputs(const AttentionInputs& args) = 0;
  virtual void do_attention(const Attention& args) = 0;
  virtual void do_delta_rule_inputs(const DeltaRuleInputs& args) = 0;
  virtual void do_gated_delta_rule(const GatedDeltaRule& args) = 0;
  virtual void do_gated_rms_norm(const GatedRmsNorm& args) = 0;
  virtual void do_layer_norm(const LayerNorm& args) = 0;
  virtual void do_span_mean(const SpanMean& args) = 0;
  virtual void do_gelu(const Gelu& args) = 0;
  virtual void do_add_rows(const AddRows& args) = 0;
  virtual void do_scatter_rows(const ScatterRows& args) = 0;
  virtual void do_fill_zero(const FillZero& args) = 0;
  virtual void do_normalize_patches(const NormalizePatches& args) = 0;
  virtual void do_add_interpolated_rows(const AddInterpolatedRows& args) = 0;
  virtual void do_axial_rotary_tables(const AxialRotaryTables& args) = 0;
  virtual void do_rotate_heads(const RotateHeads& args) = 0;
  virtual void do_option_features(const OptionFeatures& args) = 0;
  virtual void do_option_logits(const OptionLogits& args) = 0;
};

}  // namespace treble
