#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "base/parallel.h"
#include "cpu/choose_linear.h"
#include "cpu/cpu_ops.h"
#include "cpu/linear_tiles.h"
#include "cpu/onednn_bf16.h"

namespace treble::cpu {
namespace {

// Tokens that are packed at once: they bound the scratch memory, and are so many that reading the weights again for the
// next ones costs nothing.
constexpr std::int64_t kBlockTokens = 12 * kPassTokens;

// Tokens whose gate and up projections are held at once on the oneDNN path.
constexpr std::int64_t kSwigluTokens = 512;

constexpr std::int64_t passes(std::int64_t count, std::int64_t per_pass) {
  return (count + per_pass - 1) / per_pass;
}

/// A product of one pass, on its thread's stack.
struct PassProduct {
  alignas(64) std::array<float, kPassTokens * kPassOutputs> data;

  /// Writes token rows [0, num_tokens) by the outputs of `weight`.
  TensorView multiply(const float* packed, std::int64_t num_tokens, const LinearWeight& weight) {
    const TensorView product(data.data(), DType::kF32, {num_tokens, kPassOutputs});
    multiply_pass(packed, weight.weight, weight.bias, product);
    return product.slice(1, 0, weight.out_features());
  }
};

/// Some tokens, packed for the tiles.
struct TokenPass {
  std::int64_t begin, end;
  const float* packed;

  std::int64_t num_tokens() const { return end - begin; }
};

/// Calls body(pass of tokens, j) for every pass of the input's tokens and every j in [0, count), on all threads.
template <typename Body>
void for_token_passes(const TensorView& input, std::int64_t count, Workspace& scratch, const Body& body) {
  const std::int64_t total_tokens = input.size(0), in_features = input.size(1);
  const Workspace::Scope scope(scratch);
  const std::int64_t block_tokens = std::min(total_tokens, kBlockTokens);
  float* packed = scratch.take(DType::kF32, {packed_size(block_tokens, in_features)}).as<float>();
  for (std::int64_t begin = 0; begin < total_tokens; begin += kBlockTokens) {
    const TensorView block = input.rows(begin, std::min(begin + kBlockTokens, total_tokens));
    const std::int64_t num_passes = passes(block.size(0), kPassTokens);
    parallel_for(num_passes, [&](std::int64_t i) { pack_pass(block, i * kPassTokens, packed); });
    // Neighbouring calls share their weights.
    parallel_for(num_passes * count, [&](std::int64_t i) {
      const std::int64_t first = i % num_passes * kPassTokens;
      const std::int64_t last = std::min(first + kPassTokens, block.size(0));
      body(TokenPass{begin + first, begin + last, packed + packed_size(first, in_features)}, i / num_passes);
    });
  }
}

/// Outputs [begin, end) of a Linear, at most kPassOutputs.
struct OutputPass {
  const Linear::Output* output;
  std::int64_t begin, end;
};

std::vector<OutputPass> output_passes(std::span<const Linear::Output> outputs) {
  std::vector<OutputPass> all;
  for (const Linear::Output& output : outputs) {
    const std::int64_t out_features = output.weight->out_features();
    for (std::int64_t begin = 0; begin < out_features; begin += kPassOutputs)
      all.push_back({&output, begin, std::min(begin + kPassOutputs, out_features)});
  }
  return all;
}

}  // namespace

void CpuOps::do_linear(const Linear& args) {
  const TensorView& input = args.input.plain;
  if (choose_linear({input.dtype(), input.size(0)}, onednn_bf16_ != nullptr) == LinearKernel::kOnednnBf16) {
    for (const Linear::Output& output : args.outputs) onednn_bf16_->multiply(input, *output.weight, output.out);
    return;
  }
  const std::vector<OutputPass> all = output_passes(args.outputs);
  for_token_passes(input, std::ssize(all), scratch_, [&](const TokenPass& tokens, std::int64_t i) {
    const auto& [output, begin, end] = all[static_cast<std::size_t>(i)];
    PassProduct product;
    store_product(product.multiply(tokens.packed, tokens.num_tokens(), output->weight->rows(begin, end)),
                  output->out.rows(tokens.begin, tokens.end).slice(1, begin, end));
  });
}

void CpuOps::do_linear_swiglu(const LinearSwiglu& args) {
  const TensorView& input = args.input.plain;
  const TensorView& out = args.out.plain;
  if (choose_linear({input.dtype(), input.size(0)}, onednn_bf16_ != nullptr) == LinearKernel::kOnednnBf16)
    return swiglu_onednn_bf16(args);
  const std::int64_t out_features = args.gate->out_features();
  for_token_passes(input, passes(out_features, kPassOutputs), scratch_, [&](const TokenPass& tokens, std::int64_t i) {
    const std::int64_t begin = i * kPassOutputs, end = std::min(begin + kPassOutputs, out_features);
    PassProduct gate, up;
    store_swiglu(gate.multiply(tokens.packed, tokens.num_tokens(), args.gate->rows(begin, end)),
                 up.multiply(tokens.packed, tokens.num_tokens(), args.up->rows(begin, end)),
                 out.rows(tokens.begin, tokens.end).slice(1, begin, end));
  });
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
}

}  // namespace treble::cpu
