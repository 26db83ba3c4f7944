#include "cuda/linear_int8.h"

#include <algorithm>

#include "cuda/alignment.h"
#include "cuda/cuda_ops.h"
#include "cuda/linear_int8_wgmma_sm90.h"

// Linears of 8-bit codes: which form of the input they read, and which kernel multiplies.

namespace treble::cuda {
QuantizedInput CudaOps::codes_for(const LinearWeight& weight, const LinearInput& input,
                                  std::vector<QuantizedInput>& made) {
  if (input.quantized.serves(weight)) return input.quantized;
  const auto serves = [&](const QuantizedInput& form) { return form.serves(weight); };
  if (const auto found = std::find_if(made.begin(), made.end(), serves); found != made.end()) return *found;
  made.push_back(QuantizedInput::take(scratch_, input.plain.size(0), weight));
  quantize(input.plain, made.back());
  return made.back();
}

void CudaOps::multiply_int8(const QuantizedInput& input, const LinearRun& run) {
  const LinearWeight& weight = *run.first;
  const Int8Product product{.num_tokens = input.codes.size(0),
                            .out_features = run.out_features,
                            .in_features = input.codes.size(1),
                            .input = {input.codes.as<std::int8_t>(), input.codes.stride(0), input.scale.as<float>()},
                            .weight = {weight.weight.as<std::int8_t>(), weight.int8.row_scale.as<float>(),
                                       weight.bias ? weight.bias.as<float>() : nullptr},
                            .out = run.out,
                            .out_stride = run.out_stride,
                            .out_dtype = run.out_dtype,
                            .adds = run.epilogue == Epilogue::kAdd};
  const bool is_aligned = is_aligned_address(product.input.codes, product.input.codes_stride) &&
                          is_aligned_address(product.weight.codes, product.in_features);
  const bool out_is_aligned =
      is_aligned_address(run.out, run.out_stride * static_cast<std::int64_t>(size_of(run.out_dtype)));
  const Int8LinearShape shape{run.out_dtype, run.out_features, product.in_features, is_aligned, out_is_aligned};
  switch (choose_int8_linear(shape, compute_capability_, options_.kernels)) {
    case Int8LinearKernel::kTiles:
      linear_int8_tiles(product, stream_.get());
      break;
    case Int8LinearKernel::kMmaSm80:
      linear_int8_mma_sm80(product, stream_.get());
      break;
    case Int8LinearKernel::kWgmmaSm90: {
      const WgmmaInt8Tile tile =
          choose_wgmma_int8_tile(product.num_tokens, product.out_features, product.in_features, num_sms_);
      linear_int8_wgmma_sm90(product, tile, num_sms_, stream_.get());
      break;
    }
  }
  if (run.epilogue == Epilogue::kGelu) {
    const TensorView out(run.out, run.out_dtype, {product.num_tokens, run.out_stride});
    do_gelu({.x = out.slice(1, 0, run.out_features), .form = GeluForm::kErf});
  }
}

void CudaOps::swiglu_int8_wgmma(const QuantizedInput& input, const LinearWeight& gate, const LinearWeight& up,
                                const TensorView& out) {
  const auto operand = [](const LinearWeight& weight) {
    return Int8Weight{weight.weight.as<std::int8_t>(), weight.int8.row_scale.as<float>(),
                      weight.bias ? weight.bias.as<float>() : nullptr};
  };
  const std::int64_t num_tokens = input.codes.size(0), width = gate.out_features(), in_features = gate.in_features();
  swiglu_int8_wgmma_sm90({.num_tokens = num_tokens,
                          .out_features = width,
                          .in_features = in_features,
                          .input = {input.codes.as<std::int8_t>(), input.codes.stride(0), input.scale.as<float>()},
                          .gate = operand(gate),
                          .up = operand(up),
                          .out = out.data(),
                          .out_stride = out.stride(0)},
                         choose_wgmma_int8_tile(num_tokens, 2 * width, in_features, num_sms_), num_sms_, stream_.get());
}

}  // namespace treble::cuda
