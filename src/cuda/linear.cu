#include <array>

#include "cuda/choose_linear.h"
#include "cuda/cuda_ops.h"
#include "cuda/launch.cuh"
#include "cuda/linear_wgmma_sm90.h"
#include "cuda/rows.cuh"
#include "cuda/scratch.h"

// Linears as products of cuBLASLt, and what goes around them.
//
// A bf16 weight is exact in a tensor core; an fp32 input is not. It is taken apart into three bf16 terms,
//     x = high + middle + low,   8 bits of its 24 each,
// whose products with the weight are added up in fp32: three products instead of one in fp32, which is an order of
// magnitude slower, and as exact. Where activations are bf16, such inputs come from values with 8 bits; two terms keep
// 16, which is exact beside them. Not-a-number stays one, and infinity becomes one.

namespace treble::cuda {
namespace {

constexpr int kThreads = 256;

/// terms [num_terms, T, width]
__global__ void __launch_bounds__(kThreads)
    split_kernel(Rows<const float> input, std::int64_t num_tokens, std::int64_t width, int num_terms, bool is_aligned,
                 bfloat16* terms) {
  wait_for_earlier_kernels();
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.y) * kThreads + threadIdx.x) * kGroup;
  if (i >= width) return;
  float rest[kGroup];
  load_group(input.row(blockIdx.x), i, width, is_aligned, rest);
  for (int term = 0; term < num_terms; ++term) {
    float rounded[kGroup];
#pragma unroll
    for (int j = 0; j < kGroup; ++j) rounded[j] = round_to<bfloat16>(rest[j]);
    store_group(rounded, terms + (term * num_tokens + blockIdx.x) * width, i, width, true);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) rest[j] -= rounded[j];
  }
}

__global__ void __launch_bounds__(kThreads) widen_kernel(const bfloat16* from, std::int64_t count, float* to) {
  wait_for_earlier_kernels();
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) to[i] = widen(from[i]);
}

__global__ void __launch_bounds__(kThreads)
    narrow_kernel(Rows<const float> from, std::int64_t width, bool is_aligned, Rows<bfloat16> to) {
  wait_for_earlier_kernels();
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.y) * kThreads + threadIdx.x) * kGroup;
  if (i >= width) return;
  float values[kGroup];
  load_group(from.row(blockIdx.x), i, width, is_aligned, values);
  store_group(values, to.row(blockIdx.x), i, width, is_aligned);
}

/// out = silu(gate) up, rounded after the silu and after the product.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    swiglu_kernel(Rows<const T> gate, Rows<const T> up, std::int64_t width, bool is_aligned, Rows<T> out) {
  wait_for_earlier_kernels();
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.y) * kThreads + threadIdx.x) * kGroup;
  if (i >= width) return;
  float gates[kGroup], ups[kGroup];
  load_group(gate.row(blockIdx.x), i, width, is_aligned, gates);
  load_group(up.row(blockIdx.x), i, width, is_aligned, ups);
#pragma unroll
  for (int j = 0; j < kGroup; ++j) gates[j] = round_to<T>(silu_as<T>(gates[j])) * ups[j];
  store_group(gates, out.row(blockIdx.x), i, width, is_aligned);
}

dim3 rows_and_columns(std::int64_t num_rows, std::int64_t width, std::int64_t per_thread) {
  return dim3(blocks_for(num_rows, 1), blocks_for(width, kThreads * per_thread));
}

}  // namespace

void CudaOps::do_linear(const Linear& args) {
  if (args.input.num_rows() > 0) multiply(args.input, args.outputs);
}

void CudaOps::multiply(const LinearInput& forms, std::span<const Linear::Output> outputs) {
  const Workspace::Scope scope(scratch_);
  const TensorView& input = forms.plain;
  TensorView terms;                   // once for all products of cuBLASLt
  std::vector<QuantizedInput> codes;  // beside the producer's
  for (const LinearRun& run : merge_outputs(outputs)) {
    if (run.first->format == WeightFormat::kInt8) {
      multiply_int8(codes_for(*run.first, forms, codes), run);
      continue;
    }
    const std::int64_t element = static_cast<std::int64_t>(size_of(run.out_dtype));
    const bool is_nf4 = run.first->format == WeightFormat::kNf4;
    const bool is_aligned = rows_are_aligned(input) && (is_nf4 || is_aligned_address(run.first->weight.data())) &&
                            is_aligned_address(run.out, run.out_stride * element);
    const LinearKernel kernel =
        choose_linear({input.dtype(), input.size(0), run.out_features, input.size(1), is_aligned});
    if (kernel == LinearKernel::kCublasLt && !terms) terms = terms_of(input);
    if (is_nf4) {
      multiply_nf4(input, terms, kernel, run);
    } else {
      multiply(input, terms, kernel, run);
    }
  }
}

/// An input as tensor cores read it: itself if it is bf16, else [num_terms * T, in_features].
TensorView CudaOps::terms_of(const TensorView& input) {
  if (input.dtype() == DType::kBF16) return input;
  const std::int64_t num_tokens = input.size(0), width = input.size(1);
  const TensorView terms = take_terms(scratch_, activation_dtype(), num_tokens, width);
  const int num_terms = num_product_terms(activation_dtype());
  launch("linear: splitting fp32", stream_.get(), early(rows_and_columns(num_tokens, width, kGroup), kThreads),
         split_kernel, const_rows<float>(input), num_tokens, width, num_terms, rows_are_aligned(input),
         terms.as<bfloat16>());
  return terms;
}

void CudaOps::multiply(const TensorView& input, const TensorView& terms, LinearKernel kernel, const LinearRun& run) {
  const std::int64_t num_tokens = input.size(0);
  if (kernel == LinearKernel::kFewRows) return multiply_few_rows(input, run);
  const Workspace::Scope scope(scratch_);
  const TensorView out = output_of(run, num_tokens);
  if (kernel == LinearKernel::kCublasLt) {
    multiply_cublas_lt(terms, num_tokens, run);
  } else if (run.epilogue == Epilogue::kAdd) {
    const TensorView sums = take_sums(scratch_, num_tokens, run.out_features);
    LinearRun aside = run;
    aside.out = sums.data();
    aside.out_stride = run.out_features;
    aside.out_dtype = DType::kF32;
    multiply_tiles(input, aside);
    do_add_rows({.x = out, .rows = sums, .index = {}});
  } else {
    multiply_tiles(input, run);
  }
  if (run.epilogue == Epilogue::kGelu) do_gelu({.x = out, .form = GeluForm::kErf});
}

void CudaOps::multiply_cublas_lt(const TensorView& terms, std::int64_t num_tokens, const LinearRun& run) {
  const std::int64_t in_features = terms.size(1), num_terms = terms.size(0) / num_tokens;
  const TensorView& bias = run.first->bias;
  const bool is_narrow = run.out_dtype == DType::kBF16, adds = run.epilogue == Epilogue::kAdd;
  if (num_terms == 1 && (is_narrow || !bias)) {
    const DenseShape dense{run.out_dtype, num_tokens, run.out_features, static_cast<bool>(bias)};
    if (choose_dense(dense, compute_capability_, num_sms_, options_.kernels) == DenseKernel::kWgmmaSm90) {
      linear_wgmma_sm90({.num_tokens = num_tokens,
                         .out_features = run.out_features,
                         .in_features = in_features,
                         .input = terms.data(),
                         .input_stride = terms.stride(0),
                         .weight = run.first->weight.data(),
                         .out = run.out,
                         .out_stride = run.out_stride,
                         .adds = adds},
                        choose_wgmma_tile(num_tokens, run.out_features, num_sms_), num_sms_, stream_.get());
      return;
    }
    cublas_lt_.multiply({.num_tokens = num_tokens,
                         .out_features = run.out_features,
                         .in_features = in_features,
                         .input = terms.data(),
                         .input_stride = terms.stride(0),
                         .weight = run.first->weight.data(),
                         .bias = bias.data(),
                         .out = run.out,
                         .out_stride = run.out_stride,
                         .out_dtype = run.out_dtype,
                         .adds = adds});
    return;
  }
  const TensorView sums = is_narrow ? take_sums(scratch_, num_tokens, run.out_features) : output_of(run, num_tokens);
  const TensorView wide_bias = bias ? take_bias(scratch_, run.out_features) : TensorView();
  if (bias) {
    launch("linear: bias", stream_.get(), early(dim3(blocks_for(run.out_features, kThreads)), kThreads), widen_kernel,
           bias.as<bfloat16>(), run.out_features, wide_bias.as<float>());
  }
  for (std::int64_t term = num_terms - 1; term >= 0; --term) {  // the smallest first
    cublas_lt_.multiply({.num_tokens = num_tokens,
                         .out_features = run.out_features,
                         .in_features = in_features,
                         .input = terms.rows(term * num_tokens, (term + 1) * num_tokens).data(),
                         .input_stride = terms.stride(0),
                         .weight = run.first->weight.data(),
                         .bias = term == 0 ? wide_bias.data() : nullptr,
                         .out = sums.data(),
                         .out_stride = sums.stride(0),
                         .out_dtype = DType::kF32,
                         .adds = (adds && !is_narrow) || term < num_terms - 1});
  }
  if (!is_narrow) return;
  if (adds) return do_add_rows({.x = output_of(run, num_tokens), .rows = sums, .index = {}});
  launch("linear: rounding", stream_.get(), early(rows_and_columns(num_tokens, run.out_features, kGroup), kThreads),
         narrow_kernel, const_rows<float>(sums), run.out_features, true,
         Rows<bfloat16>{static_cast<bfloat16*>(run.out), run.out_stride});
}

void CudaOps::do_linear_swiglu(const LinearSwiglu& args) {
  const std::int64_t num_tokens = args.input.num_rows(), width = args.gate->out_features();
  if (num_tokens == 0 || width == 0) return;
  const Workspace::Scope scope(scratch_);
  const std::byte *gate_data = static_cast<const std::byte*>(args.gate->weight.data()),
                  *up_data = static_cast<const std::byte*>(args.up->weight.data());
  constexpr std::ptrdiff_t kFarthest = std::ptrdiff_t{1} << 40;
  const bool is_int8 = read_same_codes(*args.gate, *args.up);
  const bool is_nf4 = are_plain(WeightFormat::kNf4, *args.gate, *args.up);
  // Codes lie as they were taken: a row after the other. So do rows that were NF4, gate before up.
  const bool is_aligned = (is_nf4 || rows_are_aligned(args.gate->weight, args.up->weight)) &&
                          rows_are_aligned(args.out.plain) && (is_int8 || rows_are_aligned(args.input.plain));
  const bool is_ordered = is_nf4 || (up_data > gate_data && up_data - gate_data < kFarthest);
  const SwigluShape shape{activation_dtype(), is_int8, width, args.input.width(), is_aligned, is_ordered};
  if ((is_int8 || is_nf4 || are_plain(WeightFormat::kDense, *args.gate, *args.up)) &&
      choose_swiglu(shape, compute_capability_, options_.kernels) == SwigluKernel::kWgmmaSm90) {
    std::vector<QuantizedInput> made;
    const QuantizedInput codes = is_int8 ? codes_for(*args.gate, args.input, made) : QuantizedInput();
    const TensorView out = plain_of(args.out, activation_dtype());
    if (is_int8) {
      swiglu_int8_wgmma(codes, *args.gate, *args.up, out);
    } else if (is_nf4) {
      swiglu_nf4_wgmma(args.input.plain, *args.gate, *args.up, out);
    } else {
      swiglu_wgmma(args.input.plain, *args.gate, *args.up, out);
    }
    return quantize(out, args.out.quantized);
  }
  const TensorView both = take_swiglu_scratch(scratch_, activation_dtype(), num_tokens, width);
  const TensorView gate = both.slice(1, 0, width), up = both.slice(1, width, 2 * width);
  const std::array outputs = {Linear::Output{args.gate, gate}, Linear::Output{args.up, up}};
  multiply(args.input, outputs);
  if (swiglu_int8(gate, up, args.out)) return;
  const TensorView out = plain_of(args.out, activation_dtype());
  with_type(activation_dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch("linear_swiglu", stream_.get(), early(rows_and_columns(num_tokens, width, kGroup), kThreads),
           swiglu_kernel<T>, const_rows<T>(gate), const_rows<T>(up), width, rows_are_aligned(gate, up, out),
           rows_of<T>(out));
  });
  quantize(out, args.out.quantized);
}

void CudaOps::swiglu_wgmma(const TensorView& input, const LinearWeight& gate, const LinearWeight& up,
                           const TensorView& out) {
  const std::int64_t num_tokens = input.size(0), width = gate.out_features();
  swiglu_wgmma_sm90({.num_tokens = num_tokens,
                     .out_features = width,
                     .in_features = input.size(1),
                     .input = input.data(),
                     .input_stride = input.stride(0),
                     .gate = gate.weight.data(),
                     .up = up.weight.data(),
                     .out = out.data(),
                     .out_stride = out.stride(0)},
                    choose_wgmma_tile(num_tokens, 2 * width, num_sms_), num_sms_, stream_.get());
}

}  // namespace treble::cuda
