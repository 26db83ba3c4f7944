#include <algorithm>
#include <array>
#include <bit>

#include "cuda/alignment.h"
#include "cuda/cuda_ops.h"
#include "cuda/dequantize_nf4.h"
#include "cuda/linear_nf4_wgmma_sm90.h"
#include "cuda/scratch.h"

// Linears of 4-bit codes. Their weights become bf16, exactly as the format says: inside a product of Hopper's where it
// takes them, else in scratch memory, rows after rows, where they are multiplied as any bf16 weight is.

namespace treble::cuda {
namespace {

/// Rows [begin, end) of the weights of some outputs, one after the other.
std::vector<Nf4Stretch> stretches_of(std::span<const Linear::Output> outputs, std::int64_t begin, std::int64_t end,
                                     bfloat16* out) {
  std::vector<Nf4Stretch> stretches;
  std::int64_t first_row = 0;  // of the weight, among all
  for (const Linear::Output& output : outputs) {
    const std::int64_t num_rows = output.weight->out_features();
    const std::int64_t first = std::max(begin, first_row), last = std::min(end, first_row + num_rows);
    if (first < last) {
      bfloat16* const to = out + (first - begin) * output.weight->in_features();
      stretches.push_back(nf4_stretch(*output.weight, first - first_row, last - first_row, to));
    }
    first_row += num_rows;
  }
  return stretches;
}

Nf4Scales scales_of(const LinearWeight& weight) {
  const Nf4& nf4 = weight.nf4;
  return {.code_values = nf4.code_values.as<float>(),
          .absmax = nf4.absmax.as<std::uint8_t>(),
          .nested_values = nf4.nested_values.as<float>(),
          .nested_absmax = nf4.nested_absmax.as<float>(),
          .nested_offset = nf4.nested_offset,
          .out_features = static_cast<int>(nf4.out_features)};
}

int nested_block_shift(const LinearWeight& weight) {
  return std::countr_zero(static_cast<std::uint64_t>(weight.nf4.nested_block_size));
}

const std::byte* codes_of(const LinearWeight& weight) {
  return static_cast<const std::byte*>(weight.weight.data());
}

/// The weights whose codes and scales are read as those of the first, which are at most `most`.
std::size_t count_together(std::span<const Linear::Output> outputs, std::size_t most) {
  std::size_t count = 1;
  for (; count < std::min(most, outputs.size()); ++count) {
    const LinearWeight &last = *outputs[count - 1].weight, &next = *outputs[count].weight;
    const bool follows = codes_of(next) == codes_of(last) + last.weight.num_bytes();
    if (!follows || nested_block_shift(next) != nested_block_shift(last)) break;
  }
  return count;
}

}  // namespace

void CudaOps::multiply_nf4(const TensorView& input, const TensorView& terms, LinearKernel kernel,
                           const LinearRun& run) {
  const std::int64_t out_row = run.out_stride * static_cast<std::int64_t>(size_of(run.out_dtype));
  const auto is_for_wgmma = [&](const Linear::Output& output) {
    const LinearWeight& weight = *output.weight;
    const Nf4LinearShape shape{.input_dtype = input.dtype(),
                               .out_dtype = run.out_dtype,
                               .out_features = weight.out_features(),
                               .in_features = weight.in_features(),
                               .is_usual = is_usual_nf4(weight),
                               .is_aligned = rows_are_aligned(input) && is_aligned_address(weight.weight.data()) &&
                                             is_aligned_address(output.out.data(), out_row)};
    return choose_nf4_linear(shape, compute_capability_, options_.kernels) == Nf4LinearKernel::kWgmmaSm90;
  };
  if (std::ranges::all_of(run.outputs, is_for_wgmma)) return multiply_nf4_wgmma(input, run);
  multiply_nf4_rows(input, terms, kernel, run);
}

void CudaOps::multiply_nf4_wgmma(const TensorView& input, const LinearRun& run) {
  const std::int64_t num_tokens = input.size(0);
  for (std::span<const Linear::Output> rest = run.outputs; !rest.empty();) {
    const std::span<const Linear::Output> together = rest.first(count_together(rest, Nf4Weights::kMost));
    rest = rest.subspan(together.size());
    Nf4Product product{.num_tokens = num_tokens,
                       .out_features = 0,
                       .in_features = input.size(1),
                       .input = input.data(),
                       .input_stride = input.stride(0),
                       .weights = {.codes = together[0].weight->weight.as<std::uint8_t>(),
                                   .scales = {},
                                   .count = static_cast<int>(together.size()),
                                   .nested_block_shift = nested_block_shift(*together[0].weight)},
                       .out = together[0].out.data(),
                       .out_stride = run.out_stride,
                       .adds = run.epilogue == Epilogue::kAdd};
    for (std::size_t i = 0; i < together.size(); ++i) {
      product.weights.scales[i] = scales_of(*together[i].weight);
      product.out_features += together[i].weight->out_features();
    }
    const WgmmaNf4Tile tile = choose_wgmma_nf4_tile(num_tokens, product.out_features, num_sms_);
    linear_nf4_wgmma_sm90(product, tile, num_sms_, stream_.get());
  }
  if (run.epilogue == Epilogue::kGelu) do_gelu({.x = output_of(run, num_tokens), .form = GeluForm::kErf});
}

void CudaOps::swiglu_nf4(const TensorView& input, const LinearWeight& gate, const LinearWeight& up,
                         const TensorView& out) {
  constexpr std::ptrdiff_t kFarthest = std::ptrdiff_t{1} << 40;
  const std::ptrdiff_t distance = codes_of(up) - codes_of(gate);
  const Nf4LinearShape shape{
      .input_dtype = input.dtype(),
      .out_dtype = out.dtype(),
      .out_features = 2 * gate.out_features(),
      .in_features = gate.in_features(),
      .is_usual = is_usual_nf4(gate) && is_usual_nf4(up) && nested_block_shift(gate) == nested_block_shift(up),
      .is_aligned = rows_are_aligned(input, gate.weight, up.weight, out) && 0 < distance && distance < kFarthest};
  if (choose_nf4_linear(shape, compute_capability_, options_.kernels) == Nf4LinearKernel::kRows)
    return swiglu_nf4_rows(input, gate, up, out);
  const std::int64_t num_tokens = input.size(0);
  swiglu_nf4_wgmma_sm90({.num_tokens = num_tokens,
                         .out_features = gate.out_features(),
                         .in_features = gate.in_features(),
                         .input = input.data(),
                         .input_stride = input.stride(0),
                         .gate_codes = gate.weight.as<std::uint8_t>(),
                         .up_codes = up.weight.as<std::uint8_t>(),
                         .gate = scales_of(gate),
                         .up = scales_of(up),
                         .nested_block_shift = nested_block_shift(gate),
                         .out = out.data(),
                         .out_stride = out.stride(0)},
                        choose_wgmma_nf4_tile(num_tokens, shape.out_features, num_sms_), num_sms_, stream_.get());
}

void CudaOps::multiply_nf4_rows(const TensorView& input, const TensorView& terms, LinearKernel kernel,
                                const LinearRun& run) {
  const std::int64_t in_features = run.first->in_features();
  const auto element = static_cast<std::int64_t>(size_of(run.out_dtype));
  const Workspace::Scope scope(scratch_);
  const TensorView rows = take_nf4_rows(scratch_, run.out_features, in_features);
  for (std::int64_t begin = 0; begin < run.out_features; begin += rows.size(0)) {
    const std::int64_t end = std::min(begin + rows.size(0), run.out_features);
    dequantize_nf4(stretches_of(run.outputs, begin, end, rows.as<bfloat16>()), stream_.get());
    LinearWeight dense = {.weight = rows.rows(0, end - begin)};
    if (run.first->bias) dense.bias = TensorView(run.first->bias.as<bfloat16>() + begin, DType::kBF16, {end - begin});
    LinearRun slice = run;
    slice.first = &dense;
    slice.out_features = end - begin;
    slice.out = static_cast<std::byte*>(run.out) + begin * element;
    multiply(input, terms, kernel, slice);
  }
}

void CudaOps::swiglu_nf4_rows(const TensorView& input, const LinearWeight& gate, const LinearWeight& up,
                              const TensorView& out) {
  const std::int64_t width = gate.out_features(), in_features = gate.in_features();
  const Workspace::Scope scope(scratch_);
  const TensorView rows = take_nf4_rows(scratch_, 2 * width, in_features);
  const std::int64_t most = rows.size(0) / 2;
  for (std::int64_t begin = 0; begin < width; begin += most) {
    const std::int64_t end = std::min(begin + most, width), count = end - begin;
    const LinearWeight dense_gate = {.weight = rows.rows(0, count)};
    const LinearWeight dense_up = {.weight = rows.rows(count, 2 * count)};
    const std::array stretches = {nf4_stretch(gate, begin, end, dense_gate.weight.as<bfloat16>()),
                                  nf4_stretch(up, begin, end, dense_up.weight.as<bfloat16>())};
    dequantize_nf4(stretches, stream_.get());
    swiglu_wgmma(input, dense_gate, dense_up, out.slice(1, begin, end));
  }
}

}  // namespace treble::cuda
