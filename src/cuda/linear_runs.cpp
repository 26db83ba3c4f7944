#include <fmt/format.h>
#include <treble/error.h>

#include "cuda/cuda_ops.h"

namespace treble::cuda {
namespace {

void check_format(const LinearWeight& weight) {
  if (weight.format == WeightFormat::kDense) return;
  throw Error(ErrorCode::kDevice, fmt::format("cuda: weights stored in {} do not run on GPUs yet; use a plain bf16 "
                                              "release, or --device cpu",
                                              weight.format == WeightFormat::kNf4 ? "nf4" : "int8"));
}

}  // namespace

TensorView CudaOps::output_of(const LinearRun& run, std::int64_t num_tokens) {
  return TensorView(run.out, run.out_dtype, {num_tokens, run.out_stride}).slice(1, 0, run.out_features);
}

std::vector<CudaOps::LinearRun> CudaOps::merge_outputs(std::span<const Linear::Output> outputs) {
  std::vector<LinearRun> runs;
  const std::byte *weight_end = nullptr, *bias_end = nullptr;
  for (const Linear::Output& output : outputs) {
    const LinearWeight& weight = *output.weight;
    check_format(weight);
    if (weight.out_features() == 0) continue;
    const auto* begin = static_cast<const std::byte*>(weight.weight.data());
    const auto* bias_begin = static_cast<const std::byte*>(weight.bias.data());
    if (!runs.empty()) {
      LinearRun& last = runs.back();
      const auto* out_end = static_cast<const std::byte*>(last.out) +
                            static_cast<std::size_t>(last.out_features) * size_of(last.out_dtype);
      const bool follows = begin == weight_end && output.out.data() == out_end &&
                           output.out.dtype() == last.out_dtype && output.out.stride(0) == last.out_stride &&
                           output.epilogue == last.epilogue;
      const bool bias_follows =
          bias_begin == bias_end && (bias_begin != nullptr) == static_cast<bool>(last.first->bias);
      if (follows && bias_follows) {
        last.out_features += weight.out_features();
        weight_end = begin + weight.weight.num_bytes();
        if (weight.bias) bias_end = bias_begin + weight.bias.num_bytes();
        continue;
      }
    }
    runs.push_back(
        {&weight, weight.out_features(), output.out.data(), output.out.stride(0), output.out.dtype(), output.epilogue});
    weight_end = begin + weight.weight.num_bytes();
    bias_end = weight.bias ? bias_begin + weight.bias.num_bytes() : nullptr;
  }
  return runs;
}

}  // namespace treble::cuda
