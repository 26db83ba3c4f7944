#include "ops/ops.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>
#include <string>

#include "ops/planner.h"

namespace treble {
namespace {

/// Holds the operands of one call to what the operation's struct says of them.
class Checker {
 public:
  explicit Checker(std::string_view op) : op_(op) {}

  using DTypes = std::initializer_list<DType>;
  using Shape = std::initializer_list<std::int64_t>;

  void operator()(std::string_view name, const TensorView& view, DTypes dtypes, Shape shape) const {
    bool fits = std::find(dtypes.begin(), dtypes.end(), view.dtype()) != dtypes.end() &&
                view.rank() == static_cast<int>(shape.size());
    for (int dim = 0; fits && dim < view.rank(); ++dim) fits = view.size(dim) == shape.begin()[dim];
    if (fits) return;
    std::string types;
    for (const DType dtype : dtypes) types += fmt::format("{}{}", types.empty() ? "" : " or ", to_string(dtype));
    fail(fmt::format("{} is {}, expected [{}] {}", name, view.describe(), fmt::join(shape, ", "), types));
  }

  void require(bool holds, std::string_view message) const {
    if (!holds) fail(message);
  }

  /// @return the number of sequences of `cu_seqlens` over `total` tokens
  std::int64_t sequences(std::string_view name, const TensorView& cu_seqlens, std::int64_t total) const {
    require(cu_seqlens.rank() == 1 && cu_seqlens.size(0) >= 1 && cu_seqlens.dtype() == DType::kI32,
            fmt::format("{} is {}, expected [N + 1] i32", name, cu_seqlens.describe()));
    const std::int64_t num_seqs = cu_seqlens.size(0) - 1;
    const std::int32_t* borders = cu_seqlens.as<std::int32_t>();
    require(borders[0] == 0 && borders[num_seqs] == total,
            fmt::format("{} runs from {} to {}, expected 0 to {}", name, borders[0], borders[num_seqs], total));
    for (std::int64_t n = 0; n < num_seqs; ++n)
      if (borders[n] > borders[n + 1]) fail(fmt::format("{} falls after sequence {}", name, n));
    return num_seqs;
  }

  /// Every value of a host tensor of indices lies in [0, limit).
  void indices(std::string_view name, const TensorView& host, std::int64_t limit) const {
    const std::int32_t* values = host.as<std::int32_t>();
    for (std::int64_t i = 0; i < host.num_elements(); ++i) {
      if (values[i] < 0 || values[i] >= limit)
        fail(fmt::format("{}[{}] is {}, expected 0 to {}", name, i, values[i], limit - 1));
    }
  }

  void linear_weight(std::string_view name, const LinearWeight& weight, std::int64_t in_features) const {
    const std::string of_weight = fmt::format("the weight of {}", name);
    const DType bias_dtype = weight.format == WeightFormat::kInt8 ? DType::kF32 : DType::kBF16;
    if (weight.format == WeightFormat::kDense) {
      (*this)(of_weight, weight.weight, {DType::kBF16}, {weight.out_features(), in_features});
    } else if (weight.format == WeightFormat::kInt8) {
      (*this)(of_weight, weight.weight, {DType::kI8}, {weight.out_features(), in_features});
      (*this)(fmt::format("the scale of {}", name), weight.int8.row_scale, {DType::kF32}, {weight.out_features()});
    } else {
      require(weight.in_features() == in_features,
              fmt::format("{} has {} inputs, expected {}", of_weight, weight.in_features(), in_features));
    }
    if (weight.bias) (*this)(fmt::format("the bias of {}", name), weight.bias, {bias_dtype}, {weight.out_features()});
  }

  /// What a producer writes.
  void linear_input(std::string_view name, const LinearInput& input, DTypes dtypes, Shape shape) const {
    if (input.plain || !input.quantized) (*this)(name, input.plain, dtypes, shape);
    if (!input.quantized) return;
    (*this)(fmt::format("{}.codes", name), input.quantized.codes, {DType::kI8}, shape);
    (*this)(fmt::format("{}.scale", name), input.quantized.scale, {DType::kF32}, {*shape.begin()});
  }

  /// The input has the form that a Linear of that weight reads.
  void reads(std::string_view name, const LinearInput& input, const LinearWeight& weight) const {
    require(input.plain || input.quantized.serves(weight),
            fmt::format("{} has codes alone, and not those that every weight reads", name));
  }

  /// Loops over elements call it themselves: a message that is put together for each costs more than the check.
  [[noreturn]] void fail(std::string_view message) const {
    throw Error(ErrorCode::kInternal, fmt::format("ops: {}: {}", op_, message));
  }

 private:
  std::string_view op_;
};

constexpr DType kF32 = DType::kF32;
constexpr DType kBF16 = DType::kBF16;
constexpr DType kI32 = DType::kI32;

}  // namespace

bool QuantizedInput::serves(const LinearWeight& weight) const {
  return *this && weight.format == WeightFormat::kInt8 && rotation_group == weight.int8.rotation_group &&
         input_factor.data() == weight.int8.input_factor.data();
}

QuantizedInput QuantizedInput::rows(std::int64_t begin, std::int64_t end) const {
  QuantizedInput out = *this;
  out.codes = codes.rows(begin, end);
  out.scale = scale.rows(begin, end);
  return out;
}

QuantizedInput QuantizedInput::take(Workspace& workspace, std::int64_t num_rows, const LinearWeight& weight) {
  return {.codes = workspace.take(DType::kI8, {num_rows, weight.in_features()}),
          .scale = workspace.take(DType::kF32, {num_rows}),
          .rotation_group = weight.int8.rotation_group,
          .input_factor = weight.int8.input_factor};
}

std::unique_ptr<Planner> Ops::make_planner() const {
  return nullptr;
}

void Ops::reserve(const MemoryNeeds&) {}

LinearInput Ops::linear_input(Workspace& workspace, std::int64_t num_rows,
                              std::initializer_list<const LinearWeight*> consumers) {
  const Checker check("linear_input");
  check.require(consumers.size() > 0, "no Linear reads it");
  const std::int64_t in_features = (*consumers.begin())->in_features();
  for (const LinearWeight* weight : consumers)
    check.require(weight->in_features() == in_features, "its Linears differ in in_features");
  LinearInput input;
  for (const LinearWeight* weight : consumers) {
    if (weight->format == WeightFormat::kInt8 && !input.quantized)
      input.quantized = QuantizedInput::take(workspace, num_rows, *weight);
  }
  const auto is_served = [&](const LinearWeight* weight) { return input.quantized.serves(*weight); };
  if (!produces_codes_alone() || !std::all_of(consumers.begin(), consumers.end(), is_served))
    input.plain = workspace.take(activation_dtype(), {num_rows, in_features});
  return input;
}

void Ops::embedding(const Embedding& args) {
  const Checker check("embedding");
  const std::int64_t total_tokens = args.ids.size(0), hidden_size = args.table.size(1);
  check("ids", args.ids, {kI32}, {total_tokens});
  check("table", args.table, {kBF16}, {args.table.size(0), hidden_size});
  check("out", args.out, {activation_dtype()}, {total_tokens, hidden_size});
  do_embedding(args);
}

void Ops::rms_norm(const RmsNorm& args) {
  const Checker check("rms_norm");
  const DType act = activation_dtype();
  const std::int64_t total_tokens = args.x.size(0), hidden_size = args.weight.size(0);
  check("weight", args.weight, {kBF16}, {hidden_size});
  check("x", args.x, {act}, {total_tokens, hidden_size});
  check.linear_input("out", args.out, {act}, {total_tokens, hidden_size});
  do_rms_norm(args);
}

void Ops::linear(const Linear& args) {
  const Checker check("linear");
  const std::int64_t num_rows = args.input.num_rows(), in_features = args.input.width();
  check.linear_input("input", args.input, {activation_dtype(), kF32}, {num_rows, in_features});
  for (std::size_t i = 0; i < args.outputs.size(); ++i) {
    const Linear::Output& output = args.outputs[i];
    const std::string name = fmt::format("output {}", i);
    check.linear_weight(name, *output.weight, in_features);
    check.reads("input", args.input, *output.weight);
    check(name, output.out, {activation_dtype(), kF32}, {num_rows, output.weight->out_features()});
  }
  do_linear(args);
}

void Ops::linear_swiglu(const LinearSwiglu& args) {
  const Checker check("linear_swiglu");
  const std::int64_t total_tokens = args.input.num_rows(), in_features = args.input.width();
  const std::int64_t intermediate_size = args.gate->out_features();
  check.linear_input("input", args.input, {activation_dtype()}, {total_tokens, in_features});
  check.linear_weight("gate", *args.gate, in_features);
  check.linear_weight("up", *args.up, in_features);
  check.reads("input", args.input, *args.gate);
  check.reads("input", args.input, *args.up);
  check.require(args.up->out_features() == intermediate_size, "gate and up differ in out_features");
  check.linear_input("out", args.out, {activation_dtype()}, {total_tokens, intermediate_size});
  do_linear_swiglu(args);
}

void Ops::rotary_tables(const RotaryTables& args) {
  const Checker check("rotary_tables");
  const std::int64_t total_tokens = args.positions.size(1), num_frequencies = args.cos.size(1);
  check("positions", args.positions, {kI32}, {3, total_tokens});
  check("cos", args.cos, {activation_dtype()}, {total_tokens, num_frequencies});
  check("sin", args.sin, {activation_dtype()}, {total_tokens, num_frequencies});
  check.require(args.theta > 0, fmt::format("theta is {}, expected more than 0", args.theta));
  do_rotary_tables(args);
}

void Ops::attention_inputs(const AttentionInputs& args) {
  const Checker check("attention_inputs");
  const DType act = activation_dtype();
  const std::int64_t total_tokens = args.query.size(0), head_dim = args.query.size(2), half = args.cos.size(1);
  check("query", args.query, {act}, {total_tokens, args.query.size(1), head_dim});
  check("key", args.key, {act}, {total_tokens, args.key.size(1), head_dim});
  check("q_norm", args.q_norm, {kBF16}, {head_dim});
  check("k_norm", args.k_norm, {kBF16}, {head_dim});
  check("cos", args.cos, {act}, {total_tokens, half});
  check("sin", args.sin, {act}, {total_tokens, half});
  check.require(2 * half <= head_dim, fmt::format("{} rotary features of a head of {}", 2 * half, head_dim));
  do_attention_inputs(args);
}

void Ops::attention(const Attention& args) {
  const Checker check("attention");
  const DType dtype = args.query.dtype();
  const std::int64_t num_queries = args.query.size(0), num_q_heads = args.query.size(1), head_dim = args.query.size(2);
  const std::int64_t num_keys = args.key.size(0), num_kv_heads = args.key.size(1);
  check("query", args.query, {activation_dtype(), kF32}, {num_queries, num_q_heads, head_dim});
  check("key", args.key, {dtype}, {num_keys, num_kv_heads, head_dim});
  check("value", args.value, {dtype}, {num_keys, num_kv_heads, head_dim});
  if (args.gate) check("gate", args.gate, {dtype}, {num_queries, num_q_heads, head_dim});
  check.linear_input("out", args.out, {dtype}, {num_queries, num_q_heads * head_dim});
  check.require(num_kv_heads > 0 && num_q_heads % num_kv_heads == 0,
                fmt::format("{} query heads cannot share {} key heads", num_q_heads, num_kv_heads));
  const std::int64_t num_seqs = check.sequences("cu_seqlens_q", args.cu_seqlens_q, num_queries);
  check.require(check.sequences("cu_seqlens_k", args.cu_seqlens_k, num_keys) == num_seqs,
                "cu_seqlens_q and cu_seqlens_k differ in length");
  const std::int32_t* q = args.cu_seqlens_q.as<std::int32_t>();
  const std::int32_t* k = args.cu_seqlens_k.as<std::int32_t>();
  for (std::int64_t n = 0; n < num_seqs; ++n) {
    const std::int32_t queries = q[n + 1] - q[n], keys = k[n + 1] - k[n];
    if (queries > 0 && (keys == 0 || (args.causal && keys < queries)))
      check.fail(fmt::format("sequence {} has {} queries but {} keys", n, queries, keys));
  }
  do_attention(args);
}

void Ops::delta_rule_inputs(const DeltaRuleInputs& args) {
  const Checker check("delta_rule_inputs");
  const DType act = activation_dtype();
  const std::int64_t total_tokens = args.mixed.size(0), conv_dim = args.mixed.size(1);
  const std::int64_t conv_kernel_size = args.conv_weight.size(1);
  const std::int64_t num_k_heads = args.key.size(1), key_head_dim = args.key.size(2);
  const std::int64_t num_v_heads = args.value.size(1), value_head_dim = args.value.size(2);
  check("mixed", args.mixed, {act}, {total_tokens, 2 * num_k_heads * key_head_dim + num_v_heads * value_head_dim});
  check("a", args.a, {act}, {total_tokens, num_v_heads});
  check("b", args.b, {act}, {total_tokens, num_v_heads});
  check("conv_weight", args.conv_weight, {kBF16}, {conv_dim, conv_kernel_size});
  check.require(conv_kernel_size >= 1, "conv_weight has no taps");
  check("A_log", args.A_log, {kBF16}, {num_v_heads});
  check("dt_bias", args.dt_bias, {kBF16}, {num_v_heads});
  const std::int64_t num_seqs = check.sequences("cu_seqlens", args.cu_seqlens, total_tokens);
  if (args.conv_state) check("conv_state", args.conv_state, {act}, {num_seqs, conv_dim, conv_kernel_size - 1});
  check("query", args.query, {act}, {total_tokens, num_k_heads, key_head_dim});
  check("key", args.key, {act}, {total_tokens, num_k_heads, key_head_dim});
  check("value", args.value, {act}, {total_tokens, num_v_heads, value_head_dim});
  check("log_decay", args.log_decay, {kF32}, {total_tokens, num_v_heads});
  check("beta", args.beta, {kF32}, {total_tokens, num_v_heads});
  do_delta_rule_inputs(args);
}

void Ops::gated_delta_rule(const GatedDeltaRule& args) {
  const Checker check("gated_delta_rule");
  const DType act = activation_dtype();
  const std::int64_t total_tokens = args.query.size(0);
  const std::int64_t num_k_heads = args.query.size(1), key_head_dim = args.query.size(2);
  const std::int64_t num_v_heads = args.value.size(1), value_head_dim = args.value.size(2);
  check("query", args.query, {act}, {total_tokens, num_k_heads, key_head_dim});
  check("key", args.key, {act}, {total_tokens, num_k_heads, key_head_dim});
  check("value", args.value, {act}, {total_tokens, num_v_heads, value_head_dim});
  check("out", args.out, {act}, {total_tokens, num_v_heads, value_head_dim});
  check("log_decay", args.log_decay, {kF32}, {total_tokens, num_v_heads});
  check("beta", args.beta, {kF32}, {total_tokens, num_v_heads});
  check.require(num_k_heads > 0 && num_v_heads % num_k_heads == 0,
                fmt::format("{} value heads cannot share {} key heads", num_v_heads, num_k_heads));
  const std::int64_t num_seqs = check.sequences("cu_seqlens", args.cu_seqlens, total_tokens);
  if (args.recurrent_state)
    check("recurrent_state", args.recurrent_state, {kF32}, {num_seqs, num_v_heads, key_head_dim, value_head_dim});
  do_gated_delta_rule(args);
}

void Ops::gated_rms_norm(const GatedRmsNorm& args) {
  const Checker check("gated_rms_norm");
  const DType act = activation_dtype();
  const std::int64_t total_tokens = args.x.size(0), num_v_heads = args.x.size(1), value_head_dim = args.x.size(2);
  check("x", args.x, {act}, {total_tokens, num_v_heads, value_head_dim});
  check("gate", args.gate, {act}, {total_tokens, num_v_heads, value_head_dim});
  check("weight", args.weight, {kBF16}, {value_head_dim});
  check.linear_input("out", args.out, {act}, {total_tokens, num_v_heads * value_head_dim});
  do_gated_rms_norm(args);
}

void Ops::layer_norm(const LayerNorm& args) {
  const Checker check("layer_norm");
  const std::int64_t num_rows = args.x.size(0), hidden_size = args.weight.size(0);
  check("weight", args.weight, {kBF16}, {hidden_size});
  check("bias", args.bias, {kBF16}, {hidden_size});
  check("x", args.x, {activation_dtype(), kF32}, {num_rows, hidden_size});
  if (args.delta) check("delta", args.delta, {args.x.dtype()}, {num_rows, hidden_size});
  check.linear_input("out", args.out, {activation_dtype(), kF32}, {num_rows, hidden_size});
  do_layer_norm(args);
}

void Ops::span_mean(const SpanMean& args) {
  const Checker check("span_mean");
  const std::int64_t num_rows = args.rows.size(0), width = args.rows.size(1), num_spans = args.spans.size(0);
  check("rows", args.rows, {kBF16, kF32}, {num_rows, width});
  check("spans", args.spans, {kI32}, {num_spans, 2});
  check("out", args.out, {kF32}, {num_spans, width});
  std::int64_t num_positions = num_rows;
  if (args.index) {
    num_positions = args.index.size(0);
    check("index", args.index, {kI32}, {num_positions});
    check.indices("index", args.index, num_rows);
  }
  const std::int32_t* spans = args.spans.as<std::int32_t>();
  for (std::int64_t s = 0; s < num_spans; ++s) {
    const std::int32_t begin = spans[2 * s], end = spans[2 * s + 1];
    if (begin < 0 || begin >= end || end > num_positions)
      check.fail(fmt::format("span {} is [{}, {}) of {} positions", s, begin, end, num_positions));
  }
  do_span_mean(args);
}

void Ops::gelu(const Gelu& args) {
  Checker("gelu")("x", args.x, {activation_dtype(), kF32}, {args.x.size(0), args.x.size(1)});
  do_gelu(args);
}

void Ops::add_rows(const AddRows& args) {
  const Checker check("add_rows");
  const std::int64_t num_rows = args.x.size(0), width = args.x.size(1);
  check("x", args.x, {activation_dtype(), kF32}, {num_rows, width});
  check("rows", args.rows, {kF32, kBF16}, {args.index ? args.rows.size(0) : num_rows, width});
  if (args.index) {
    check("index", args.index, {kI32}, {num_rows});
    check.indices("index", args.index, args.rows.size(0));
  }
  do_add_rows(args);
}

void Ops::scatter_rows(const ScatterRows& args) {
  const Checker check("scatter_rows");
  const std::int64_t num_rows = args.rows.size(0), hidden_size = args.x.size(1);
  check("rows", args.rows, {activation_dtype()}, {num_rows, hidden_size});
  check("x", args.x, {activation_dtype()}, {args.x.size(0), hidden_size});
  check("index", args.index, {kI32}, {num_rows});
  check.indices("index", args.index, args.x.size(0));
  do_scatter_rows(args);
}

void Ops::fill_zero(const FillZero& args) {
  const Checker check("fill_zero");
  check.require((args.x.dtype() == kF32 || args.x.dtype() == kBF16) && args.x.is_contiguous(),
                fmt::format("x is {}, expected contiguous f32 or bf16", args.x.describe()));
  do_fill_zero(args);
}

void Ops::normalize_patches(const NormalizePatches& args) {
  const Checker check("normalize_patches");
  constexpr std::int64_t kChannels = 3, kFrames = 2;
  const std::int64_t num_patches = args.out.size(0), num_pixels = args.out.size(3);
  const std::int64_t given_frames = args.levels.size(2) == 1 ? 1 : kFrames;
  check("levels", args.levels, {DType::kU8}, {num_patches, kChannels, given_frames, num_pixels});
  check("out", args.out, {activation_dtype()}, {num_patches, kChannels, kFrames, num_pixels});
  for (const float deviation : args.deviation) check.require(deviation != 0, "a deviation is 0");
  do_normalize_patches(args);
}

void Ops::add_interpolated_rows(const AddInterpolatedRows& args) {
  const Checker check("add_interpolated_rows");
  const std::int64_t num_rows = args.x.size(0), width = args.x.size(1);
  constexpr std::int64_t kTaps = 4;
  check("x", args.x, {activation_dtype()}, {num_rows, width});
  check("table", args.table, {kBF16}, {args.table.size(0), width});
  check("index", args.index, {kI32}, {num_rows, kTaps});
  check("weights", args.weights, {kF32}, {num_rows, kTaps});
  check.indices("index", args.index, args.table.size(0));
  do_add_interpolated_rows(args);
}

void Ops::axial_rotary_tables(const AxialRotaryTables& args) {
  const Checker check("axial_rotary_tables");
  const std::int64_t num_rows = args.positions.size(1), num_frequencies = args.cos.size(1);
  check("positions", args.positions, {kI32}, {2, num_rows});
  check("cos", args.cos, {kF32}, {num_rows, num_frequencies});
  check("sin", args.sin, {kF32}, {num_rows, num_frequencies});
  check.require(num_frequencies % 2 == 0, fmt::format("{} frequencies for two axes", num_frequencies));
  check.require(args.theta > 0, fmt::format("theta is {}, expected more than 0", args.theta));
  do_axial_rotary_tables(args);
}

void Ops::rotate_heads(const RotateHeads& args) {
  const Checker check("rotate_heads");
  const DType act = activation_dtype();
  const std::int64_t num_rows = args.query.size(0), head_dim = args.query.size(2);
  check("query", args.query, {act}, {num_rows, args.query.size(1), head_dim});
  check("key", args.key, {act}, {num_rows, args.key.size(1), head_dim});
  check.require(head_dim % 2 == 0, fmt::format("a head of {} features has no halves", head_dim));
  check("cos", args.cos, {kF32}, {num_rows, head_dim / 2});
  check("sin", args.sin, {kF32}, {num_rows, head_dim / 2});
  do_rotate_heads(args);
}

void Ops::option_features(const OptionFeatures& args) {
  const Checker check("option_features");
  const std::int64_t num_options = args.options.size(0), width = args.fields.size(1);
  check("fields", args.fields, {kF32}, {args.fields.size(0), width});
  check("options", args.options, {kF32}, {num_options, width});
  check("owner", args.owner, {kI32}, {num_options});
  check.indices("owner", args.owner, args.fields.size(0));
  check("out", args.out, {kF32}, {num_options, 4 * width});
  do_option_features(args);
}

void Ops::option_logits(const OptionLogits& args) {
  const Checker check("option_logits");
  const std::int64_t num_questions = args.fields.size(0), num_options = args.options.size(0);
  const std::int64_t width = args.fields.size(1), hidden_size = args.anchor.size(1);
  check("fields", args.fields, {kF32}, {num_questions, width});
  check("options", args.options, {kF32}, {num_options, width});
  check("anchor", args.anchor, {kF32}, {num_questions, hidden_size});
  check("lexical", args.lexical, {kF32}, {num_options, hidden_size});
  check("residual", args.residual, {kF32}, {num_options, 1});
  check("owner", args.owner, {kI32}, {num_options});
  check.indices("owner", args.owner, num_questions);
  check("out", args.out, {kF32}, {num_options});
  do_option_logits(args);
}

}  // namespace treble
