#include "cuda/cuda_ops.h"

namespace treble::cuda {
namespace {

/// Where a tensor of the next weight has to begin; null where there is none.
struct End {
  const std::byte* at = nullptr;

  explicit End(const TensorView& view)
      : at(view ? static_cast<const std::byte*>(view.data()) + view.num_bytes() : nullptr) {}
  bool is_at(const TensorView& view) const { return static_cast<const std::byte*>(view.data()) == at; }
};

}  // namespace

TensorView CudaOps::output_of(const LinearRun& run, std::int64_t num_tokens) {
  return TensorView(run.out, run.out_dtype, {num_tokens, run.out_stride}).slice(1, 0, run.out_features);
}

std::vector<CudaOps::LinearRun> CudaOps::merge_outputs(std::span<const Linear::Output> outputs) {
  std::vector<LinearRun> runs;
  const LinearWeight* last_weight = nullptr;  // of the last run
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Linear::Output& output = outputs[i];
    const LinearWeight& weight = *output.weight;
    if (weight.out_features() == 0) continue;
    if (last_weight) {
      LinearRun& last = runs.back();
      const auto* out_end = static_cast<const std::byte*>(last.out) +
                            static_cast<std::size_t>(last.out_features) * size_of(last.out_dtype);
      const bool out_follows = output.out.data() == out_end && output.out.dtype() == last.out_dtype &&
                               output.out.stride(0) == last.out_stride && output.epilogue == last.epilogue;
      const bool is_alike = weight.format == last_weight->format &&
                            (weight.format != WeightFormat::kInt8 || read_same_codes(*last_weight, weight));
      // Rows of 4-bit codes become bf16 next to each other, wherever they lie.
      const bool rows_follow = weight.format == WeightFormat::kNf4 || End(last_weight->weight).is_at(weight.weight);
      const bool weight_follows = is_alike && rows_follow &&
                                  End(last_weight->int8.row_scale).is_at(weight.int8.row_scale) &&
                                  End(last_weight->bias).is_at(weight.bias);
      if (out_follows && weight_follows) {
        last.out_features += weight.out_features();
        last.outputs = std::span(last.outputs.data(), &output + 1);
        last_weight = &weight;
        continue;
      }
    }
    runs.push_back({&weight, outputs.subspan(i, 1), weight.out_features(), output.out.data(), output.out.stride(0),
                    output.out.dtype(), output.epilogue});
    last_weight = &weight;
  }
  return runs;
}

}  // namespace treble::cuda
