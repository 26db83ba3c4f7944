#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "base/parallel.h"
#include "cpu/choose_linear.h"
#include "cpu/cpu_ops.h"
#include "cpu/int8_inputs.h"
#include "cpu/int8_tiles.h"
#include "cpu/linear_tiles.h"
#include "cpu/onednn_bf16.h"
#include "cpu/tile.h"

namespace treble::cpu {
namespace {

// Tokens that are packed at once: they bound the scratch memory, and are so many that reading the weights again for the
// next ones costs nothing.
constexpr std::int64_t kBlockTokens = 6 * kPassTokens;

// Tokens whose gate and up projections are held at once on the oneDNN path.
constexpr std::int64_t kSwigluTokens = 512;

constexpr std::int64_t passes(std::int64_t count, std::int64_t per_pass) {
  return (count + per_pass - 1) / per_pass;
}

/// Some tokens in the forms that the Linears of a call read.
struct TokenPass {
  std::int64_t begin, end;
  const float* packed;                           // for the tiles of linear_tiles.h; null if nothing reads it
  const std::vector<QuantizedInput>& quantized;  // of all tokens

  std::int64_t num_tokens() const { return end - begin; }
  QuantizedInput codes_for(const LinearWeight& weight) const {
    const auto serves = [&](const QuantizedInput& input) { return input.serves(weight); };
    return std::find_if(quantized.begin(), quantized.end(), serves)->rows(begin, end);
  }
};

/// What a thread works in: products of passes and widened weights.
class PassScratch {
 public:
  static constexpr std::int64_t kProductSize = kPassTokens * kPassOutputs;
  static constexpr std::int64_t kNumFloats = 2 * kProductSize + kWidenedSize;

  explicit PassScratch(float* memory) : memory_(memory) {}

  /// The product of the tokens with the rows of `weight`, in product 0 or 1.
  TensorView multiply(const TokenPass& tokens, const LinearWeight& weight, int index = 0) const {
    const TensorView product(memory_ + index * kProductSize, DType::kF32, {tokens.num_tokens(), kPassOutputs});
    if (weight.format == WeightFormat::kInt8) {
      multiply_int8_pass(tokens.codes_for(weight), weight, product);
    } else {
      multiply_pass(tokens.packed, weight, memory_ + 2 * kProductSize, product);
    }
    return product.slice(1, 0, weight.out_features());
  }

 private:
  float* memory_;
};

/// How the Linears of a call read their input.
struct InputForms {
  TensorView plain;
  std::vector<QuantizedInput> quantized;
  bool is_packed;  // some read the plain form
};

/// Calls body(pass of tokens, j, scratch) for every pass of the input's tokens and every j in [0, count), on all
/// threads.
template <typename Body>
void for_token_passes(const InputForms& forms, std::int64_t count, Workspace& scratch, const Body& body) {
  const TensorView& input = forms.plain;
  const std::int64_t total_tokens = input.size(0), in_features = input.size(1);
  const Workspace::Scope scope(scratch);
  const std::int64_t block_tokens = std::min(total_tokens, kBlockTokens);
  const std::int64_t num_packed = forms.is_packed ? packed_size(block_tokens, in_features) : 0;
  float* packed = scratch.take(DType::kF32, {num_packed}).as<float>();
  for (std::int64_t begin = 0; begin < total_tokens; begin += kBlockTokens) {
    const TensorView block = input.rows(begin, std::min(begin + kBlockTokens, total_tokens));
    const std::int64_t num_passes = passes(block.size(0), kPassTokens);
    if (forms.is_packed) {
      parallel_ranges(block.size(0), kPackTokens,
                      [&](std::int64_t first, std::int64_t last) { pack_tokens(block, first, last, packed); });
    }
    // Neighbouring calls share their weights.
    for_each_task(scratch, num_passes * count, PassScratch::kNumFloats, [&](std::int64_t i, float* memory) {
      const std::int64_t first = i % num_passes * kPassTokens;
      const std::int64_t last = std::min(first + kPassTokens, block.size(0));
      const float* packed_pass = forms.is_packed ? packed + packed_size(first, in_features) : nullptr;
      body(TokenPass{begin + first, begin + last, packed_pass, forms.quantized}, i / num_passes, PassScratch(memory));
    });
  }
}

/// Outputs [begin, end) of a Linear, at most kPassOutputs.
struct OutputPass {
  const Linear::Output* output;
  std::int64_t begin, end;
};

std::vector<OutputPass> output_passes(std::span<const Linear::Output* const> outputs) {
  std::vector<OutputPass> all;
  for (const Linear::Output* output : outputs) {
    const std::int64_t out_features = output->weight->out_features();
    for (std::int64_t begin = 0; begin < out_features; begin += kPassOutputs)
      all.push_back({output, begin, std::min(begin + kPassOutputs, out_features)});
  }
  return all;
}

bool reads_plain(std::span<const LinearWeight* const> weights) {
  return std::any_of(weights.begin(), weights.end(),
                     [](const LinearWeight* weight) { return weight->format != WeightFormat::kInt8; });
}

}  // namespace

void CpuOps::quantize(const TensorView& plain, const QuantizedInput& out) {
  if (!out) return;
  constexpr std::int64_t kRowsPerTask = 4;
  const std::int64_t num_rows = plain.size(0);
  for_each_task(scratch_, passes(num_rows, kRowsPerTask), plain.size(1), [&](std::int64_t task, float* memory) {
    const std::int64_t begin = task * kRowsPerTask, end = std::min(begin + kRowsPerTask, num_rows);
    quantize_rows(plain, out, int8_activations_, begin, end, memory);
  });
}

std::vector<QuantizedInput> CpuOps::quantized_forms(const LinearInput& input,
                                                    std::span<const LinearWeight* const> weights) {
  std::vector<QuantizedInput> forms;
  if (input.quantized) forms.push_back(input.quantized);
  for (const LinearWeight* weight : weights) {
    const auto serves = [&](const QuantizedInput& form) { return form.serves(*weight); };
    if (weight->format != WeightFormat::kInt8 || std::any_of(forms.begin(), forms.end(), serves)) continue;
    forms.push_back(QuantizedInput::take(scratch_, input.plain.size(0), *weight));
    quantize(input.plain, forms.back());
  }
  return forms;
}

LinearKernel CpuOps::kernel_of(const TensorView& input, const LinearWeight& weight) const {
  return choose_linear({input.dtype(), input.size(0), weight.format}, onednn_bf16_ != nullptr);
}

void CpuOps::do_linear(const Linear& args) {
  const TensorView& input = args.input.plain;
  std::vector<const Linear::Output*> tiled;
  for (const Linear::Output& output : args.outputs) {
    if (kernel_of(input, *output.weight) == LinearKernel::kOnednnBf16) {
      onednn_bf16_->multiply(input, *output.weight, output.out);
    } else {
      tiled.push_back(&output);
    }
  }
  if (tiled.empty()) return;
  const Workspace::Scope scope(scratch_);
  std::vector<const LinearWeight*> weights;
  for (const Linear::Output* output : tiled) weights.push_back(output->weight);
  const InputForms forms{input, quantized_forms(args.input, weights), reads_plain(weights)};
  const std::vector<OutputPass> all = output_passes(tiled);
  const auto multiply = [&](const TokenPass& tokens, std::int64_t i, const PassScratch& scratch) {
    const auto& [output, begin, end] = all[static_cast<std::size_t>(i)];
    store_product(scratch.multiply(tokens, output->weight->rows(begin, end)),
                  output->out.rows(tokens.begin, tokens.end).slice(1, begin, end));
  };
  for_token_passes(forms, std::ssize(all), scratch_, multiply);
}

void CpuOps::do_linear_swiglu(const LinearSwiglu& args) {
  const TensorView& input = args.input.plain;
  const TensorView& out = args.out.plain;
  if (kernel_of(input, *args.gate) == LinearKernel::kOnednnBf16 &&
      kernel_of(input, *args.up) == LinearKernel::kOnednnBf16)
    return swiglu_onednn_bf16(args);
  const Workspace::Scope scope(scratch_);
  const std::array weights = {args.gate, args.up};
  const InputForms forms{input, quantized_forms(args.input, weights), reads_plain(weights)};
  const std::int64_t out_features = args.gate->out_features();
  const auto multiply = [&](const TokenPass& tokens, std::int64_t i, const PassScratch& scratch) {
    const std::int64_t begin = i * kPassOutputs, end = std::min(begin + kPassOutputs, out_features);
    store_swiglu(scratch.multiply(tokens, args.gate->rows(begin, end), 0),
                 scratch.multiply(tokens, args.up->rows(begin, end), 1),
                 out.rows(tokens.begin, tokens.end).slice(1, begin, end));
  };
  for_token_passes(forms, passes(out_features, kPassOutputs), scratch_, multiply);
  quantize(out, args.out.quantized);
}

void CpuOps::swiglu_onednn_bf16(const LinearSwiglu& args) {
  const TensorView& input = args.input.plain;
  const TensorView& out = args.out.plain;
  const std::int64_t total_tokens = input.size(0), out_features = args.gate->out_features();
  const Workspace::Scope scope(scratch_);
  const std::int64_t block_tokens = std::min(total_tokens, kSwigluTokens);
  const TensorView gates = scratch_.take(DType::kBF16, {block_tokens, out_features});
  const TensorView ups = scratch_.take(DType::kBF16, {block_tokens, out_features});
  for (std::int64_t begin = 0; begin < total_tokens; begin += kSwigluTokens) {
    const std::int64_t end = std::min(begin + kSwigluTokens, total_tokens);
    const TensorView block = input.rows(begin, end);
    const TensorView gate = gates.rows(0, end - begin), up = ups.rows(0, end - begin);
    onednn_bf16_->multiply(block, *args.gate, gate);
    onednn_bf16_->multiply(block, *args.up, up);
    parallel_ranges(end - begin, 4, [&](std::int64_t first, std::int64_t last) {
      store_swiglu(gate.rows(first, last), up.rows(first, last), out.rows(begin + first, begin + last));
    });
  }
  quantize(out, args.out.quantized);
}

}  // namespace treble::cpu
