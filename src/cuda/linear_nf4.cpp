#include <algorithm>
#include <array>

#include "cuda/cuda_ops.h"
#include "cuda/dequantize_nf4.h"
#include "cuda/scratch.h"

// Linears of 4-bit codes: rows of their weights become bf16 in scratch memory, exactly as the format says, and are
// multiplied there as any bf16 weight is.

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

}  // namespace

void CudaOps::multiply_nf4(const TensorView& input, const TensorView& terms, LinearKernel kernel,
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

void CudaOps::swiglu_nf4_wgmma(const TensorView& input, const LinearWeight& gate, const LinearWeight& up,
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
