#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "base/parallel.h"
#include "cpu/choose_linear.h"
#include "cpu/cpu_ops.h"
#include "cpu/int8_blocks.h"
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

/// The codes of some tokens, packed for blocks.
struct PackedCodes {
  QuantizedInput input;
  std::int8_t* packed;
};

constexpr std::int64_t kInt8PassOutputs = 2 * kInt8BlockOutputs;

// As many tokens as packed at once, at most: 8-bit codes take a quarter of what fp32 values do.
constexpr std::int64_t kInt8TokensAtOnce = 4 * kBlockTokens;

/// Packs tokens [begin, end) of every form, on all threads.
std::vector<PackedCodes> pack_forms(Int8Blocks blocks, std::span<const QuantizedInput> forms, std::int64_t begin,
                                    std::int64_t end, Workspace& scratch) {
  std::vector<PackedCodes> all;
  for (const QuantizedInput& form : forms) {
    const QuantizedInput input = form.rows(begin, end);
    const std::int64_t num_bytes = packed_codes_size(end - begin, input.codes.size(1));
    const PackedCodes codes{input, scratch.take(DType::kI8, {num_bytes}).as<std::int8_t>()};
    parallel_ranges(end - begin, kInt8BlockTokens, [&](std::int64_t first, std::int64_t last) {
      pack_codes(blocks, input.codes, first, last, codes.packed);
    });
    all.push_back(codes);
  }
  return all;
}

/// Calls body(first token, last token, first output, last output, scratch) for passes of all tokens and outputs, on all
/// threads. Scratch holds two products of a pass.
template <typename Body>
void for_int8_passes(std::int64_t num_tokens, std::int64_t num_outputs, Workspace& workspace, const Body& body) {
  // A thread keeps its tokens for some passes of outputs, but there is work for all threads to the end.
  constexpr std::int64_t kMostPasses = 4, kTasksPerThread = 4;
  const std::int64_t token_passes = passes(num_tokens, kPassTokens);
  const std::int64_t output_passes = passes(num_outputs, kInt8PassOutputs);
  const std::int64_t at_once =
      std::clamp<std::int64_t>(token_passes * output_passes / (available_threads() * kTasksPerThread), 1, kMostPasses);
  const std::int64_t num_tasks = token_passes * passes(output_passes, at_once);
  constexpr std::int64_t kScratch = 2 * kPassTokens * kInt8PassOutputs;
  for_each_task(workspace, num_tasks, kScratch, [&](std::int64_t task, float* memory) {
    const std::int64_t first = task % token_passes * kPassTokens, last = std::min(first + kPassTokens, num_tokens);
    const std::int64_t begin = task / token_passes * at_once * kInt8PassOutputs;
    const std::int64_t end = std::min(begin + at_once * kInt8PassOutputs, num_outputs);
    for (std::int64_t o = begin; o < end; o += kInt8PassOutputs)
      body(first, last, o, std::min(o + kInt8PassOutputs, end), memory);
  });
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
  return choose_linear({input.dtype(), input.size(0), weight.format, weight.out_features(), weight.in_features()},
                       {onednn_bf16_ != nullptr, int8_blocks_ != Int8Blocks::kNone});
}

void CpuOps::do_linear(const Linear& args) {
  const Workspace::Scope scope(scratch_);
  std::vector<Linear::Output> products(args.outputs.begin(), args.outputs.end());
  for (Linear::Output& product : products) {
    if (product.epilogue == Epilogue::kAdd)
      product.out = scratch_.take(DType::kF32, {product.out.size(0), product.out.size(1)});
  }
  multiply({.input = args.input, .outputs = products});
  for (std::size_t i = 0; i < products.size(); ++i) {
    const Linear::Output& output = args.outputs[i];
    if (output.epilogue == Epilogue::kAdd) do_add_rows({.x = output.out, .rows = products[i].out, .index = {}});
    if (output.epilogue == Epilogue::kGelu) do_gelu({.x = output.out, .form = GeluForm::kErf});
  }
}

void CpuOps::multiply(const Linear& args) {
  const TensorView& input = args.input.plain;
  std::vector<const Linear::Output*> tiled, in_blocks;
  for (const Linear::Output& output : args.outputs) {
    switch (kernel_of(input, *output.weight)) {
      case LinearKernel::kOnednnBf16:
        onednn_bf16_->multiply(input, *output.weight, output.out);
        break;
      case LinearKernel::kInt8Blocks:
        in_blocks.push_back(&output);
        break;
      case LinearKernel::kTiles:
        tiled.push_back(&output);
        break;
    }
  }
  if (tiled.empty() && in_blocks.empty()) return;
  const Workspace::Scope scope(scratch_);
  std::vector<const LinearWeight*> weights;
  for (const Linear::Output* output : tiled) weights.push_back(output->weight);
  const bool is_packed = reads_plain(weights);
  for (const Linear::Output* output : in_blocks) weights.push_back(output->weight);
  const InputForms forms{input, quantized_forms(args.input, weights), is_packed};
  if (!in_blocks.empty()) linear_int8_blocks(in_blocks, forms.quantized);
  if (tiled.empty()) return;
  const std::vector<OutputPass> all = output_passes(tiled);
  const auto multiply = [&](const TokenPass& tokens, std::int64_t i, const PassScratch& scratch) {
    const auto& [output, begin, end] = all[static_cast<std::size_t>(i)];
    store_product(scratch.multiply(tokens, output->weight->rows(begin, end)),
                  output->out.rows(tokens.begin, tokens.end).slice(1, begin, end));
  };
  for_token_passes(forms, std::ssize(all), scratch_, multiply);
}

void CpuOps::linear_int8_blocks(std::span<const Linear::Output* const> outputs, std::span<const QuantizedInput> forms) {
  const std::int64_t total_tokens = forms.front().codes.size(0);
  // Outputs of all weights in a row, as many passes each as it needs.
  struct Part {
    const Linear::Output* output;
    std::int64_t begin;
  };
  std::vector<Part> parts;
  std::int64_t num_outputs = 0;
  for (const Linear::Output* output : outputs) {
    parts.push_back({output, num_outputs});
    num_outputs += round_up(output->weight->out_features(), kInt8PassOutputs);
  }
  for (std::int64_t begin = 0; begin < total_tokens; begin += kInt8TokensAtOnce) {
    const std::int64_t end = std::min(begin + kInt8TokensAtOnce, total_tokens);
    const Workspace::Scope scope(scratch_);
    const std::vector<PackedCodes> packed = pack_forms(int8_blocks_, forms, begin, end, scratch_);
    const auto multiply = [&](std::int64_t t, std::int64_t t_end, std::int64_t o, std::int64_t, float* memory) {
      const auto after = std::upper_bound(parts.begin(), parts.end(), o,
                                          [](std::int64_t at, const Part& part) { return at < part.begin; });
      const auto& [output, part_begin] = *std::prev(after);
      const LinearWeight& weight = *output->weight;
      const std::int64_t first = o - part_begin, last = std::min(first + kInt8PassOutputs, weight.out_features());
      const auto serves = [&](const PackedCodes& codes) { return codes.input.serves(weight); };
      const PackedCodes& codes = *std::find_if(packed.begin(), packed.end(), serves);
      const TensorView sums(memory, DType::kI32, {t_end - t, last - first});
      multiply_codes(int8_blocks_, codes.packed + t * weight.in_features(), weight, first, sums);
      scale_sums(sums, codes.input.scale.rows(t, t_end), weight.rows(first, last),
                 output->out.rows(begin + t, begin + t_end).slice(1, first, last));
    };
    for_int8_passes(end - begin, num_outputs, scratch_, multiply);
  }
}

void CpuOps::do_linear_swiglu(const LinearSwiglu& args) {
  const TensorView& input = args.input.plain;
  const TensorView& out = args.out.plain;
  if (kernel_of(input, *args.gate) == LinearKernel::kOnednnBf16 &&
      kernel_of(input, *args.up) == LinearKernel::kOnednnBf16)
    return swiglu_onednn_bf16(args);
  if (kernel_of(input, *args.gate) == LinearKernel::kInt8Blocks &&
      kernel_of(input, *args.up) == LinearKernel::kInt8Blocks)
    return swiglu_int8_blocks(args);
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

void CpuOps::swiglu_int8_blocks(const LinearSwiglu& args) {
  const std::array weights = {args.gate, args.up};
  const std::int64_t total_tokens = args.input.plain.size(0), out_features = args.gate->out_features();
  const Workspace::Scope scope(scratch_);
  const std::vector<QuantizedInput> forms = quantized_forms(args.input, weights);
  for (std::int64_t begin = 0; begin < total_tokens; begin += kInt8TokensAtOnce) {
    const std::int64_t end = std::min(begin + kInt8TokensAtOnce, total_tokens);
    const Workspace::Scope block_scope(scratch_);
    const std::vector<PackedCodes> packed = pack_forms(int8_blocks_, forms, begin, end, scratch_);
    const auto multiply = [&](std::int64_t t, std::int64_t t_end, std::int64_t o, std::int64_t o_end, float* memory) {
      std::array<TensorView, 2> products;
      for (std::size_t i = 0; i < 2; ++i, memory += kPassTokens * kInt8PassOutputs) {
        const LinearWeight& weight = *weights[i];
        const auto serves = [&](const PackedCodes& codes) { return codes.input.serves(weight); };
        const PackedCodes& codes = *std::find_if(packed.begin(), packed.end(), serves);
        const TensorView sums(memory, DType::kI32, {t_end - t, o_end - o});
        products[i] = TensorView(memory, DType::kF32, {t_end - t, o_end - o});
        multiply_codes(int8_blocks_, codes.packed + t * weight.in_features(), weight, o, sums);
        scale_sums(sums, codes.input.scale.rows(t, t_end), weight.rows(o, o_end), products[i]);
      }
      store_swiglu(products[0], products[1], args.out.plain.rows(begin + t, begin + t_end).slice(1, o, o_end));
    };
    for_int8_passes(end - begin, out_features, scratch_, multiply);
  }
  quantize(args.out.plain, args.out.quantized);
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
