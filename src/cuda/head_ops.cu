#include "cuda/cuda_ops.h"
#include "cuda/launch.cuh"
#include "cuda/rows.cuh"

// What the decision head computes over few rows, in fp32; and GELU, which the vision tower shares. Limit: launches.

namespace treble::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;

constexpr int kSpanColumns = kWarpSize * kGroup;  // of a block

/// A block takes one span and kSpanColumns columns; its warps take the rows in turn, and their sums are added in order.
/// The rows may lie in pinned host memory: a short span is then one trip over the bus, 16 bytes a lane.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    span_mean_kernel(Rows<const T> rows, const std::int32_t* index, const std::int32_t* spans, std::int64_t width,
                     bool is_aligned, Rows<float> out) {
  wait_for_earlier_kernels();
  __shared__ float partial[kWarps][kSpanColumns];
  const std::int64_t first_column = static_cast<std::int64_t>(blockIdx.y) * kSpanColumns;
  const std::int32_t begin = spans[2 * blockIdx.x], end = spans[2 * blockIdx.x + 1];
  float sums[kGroup] = {};
#pragma unroll 4
  for (std::int32_t t = begin + warp_id(); t < end; t += kWarps) {
    float values[kGroup];
    load_group(rows.row(index ? index[t] : t), first_column + lane_id() * kGroup, width, is_aligned, values);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) sums[j] += values[j];
  }
#pragma unroll
  for (int j = 0; j < kGroup; ++j) partial[warp_id()][lane_id() * kGroup + j] = sums[j];
  sync_block();
  static_assert(kSpanColumns == kThreads);
  const std::int64_t column = first_column + threadIdx.x;
  if (column >= width) return;
  float sum = 0;
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) sum += partial[warp][threadIdx.x];
  out.row(blockIdx.x)[column] = sum / static_cast<float>(end - begin);
}

template <typename T>
__global__ void __launch_bounds__(kThreads) gelu_kernel(Rows<T> x, std::int64_t width, bool is_tanh, bool is_aligned) {
  wait_for_earlier_kernels();
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.y) * kThreads + threadIdx.x) * kGroup;
  if (i >= width) return;
  float values[kGroup];
  load_group(x.row(blockIdx.x), i, width, is_aligned, values);
#pragma unroll
  for (int j = 0; j < kGroup; ++j) {
    const float v = values[j];
    constexpr float kTwiceSqrtTwoOverPi = 1.5957691216057308f;
    // (1 + tanh(u)) / 2 = sigmoid(2 u)
    values[j] = is_tanh ? v * sigmoid(kTwiceSqrtTwoOverPi * (v + 0.044715f * v * v * v)) : gelu_erf(v);
  }
  store_group(values, x.row(blockIdx.x), i, width, is_aligned);
}

template <typename X, typename T>
__global__ void __launch_bounds__(kThreads)
    add_rows_kernel(Rows<X> x, Rows<const T> rows, const std::int32_t* index, std::int64_t width) {
  wait_for_earlier_kernels();
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.y) * kThreads + threadIdx.x;
  if (column >= width) return;
  X& to = x.row(blockIdx.x)[column];
  to = narrow<X>(widen(to) + widen(rows.row(index ? index[blockIdx.x] : blockIdx.x)[column]));
}

__global__ void __launch_bounds__(kThreads)
    option_features_kernel(Rows<const float> fields, Rows<const float> options, const std::int32_t* owner,
                           std::int64_t width, Rows<float> out) {
  wait_for_earlier_kernels();
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.y) * kThreads + threadIdx.x;
  if (i >= width) return;
  const float field = fields.row(owner[blockIdx.x])[i], option = options.row(blockIdx.x)[i];
  float* row = out.row(blockIdx.x);
  row[i] = field;
  row[width + i] = option;
  row[2 * width + i] = field * option;
  row[3 * width + i] = fabsf(field - option);
}

/// What a cosine of two vectors is made of.
struct CosineSums {
  float product = 0, a_squares = 0, b_squares = 0;

  /// A thread's share of a block's.
  __device__ void add(const float* a, const float* b, std::int64_t count) {
    for (std::int64_t i = threadIdx.x; i < count; i += kThreads) {
      product += a[i] * b[i];
      a_squares += a[i] * a[i];
      b_squares += b[i] * b[i];
    }
  }
  /// The whole block's. @param partial  [32] in shared memory
  __device__ void reduce(float* partial) {
    product = block_sum(product, partial);
    a_squares = block_sum(a_squares, partial);
    b_squares = block_sum(b_squares, partial);
  }
  /// Norms are floored, so a zero vector has cosine 0 with everything.
  __device__ float cosine(float floor) const {
    return product / (fmaxf(sqrtf(a_squares), floor) * fmaxf(sqrtf(b_squares), floor));
  }
};

struct OptionLogitsOperands {
  Rows<const float> fields, options, anchor, lexical, residual;
  const std::int32_t* owner;
  std::int64_t width, hidden_size;
  float prior_scale, joint_scale, residual_gate;
  float* out;
};

/// A block for each option.
__global__ void __launch_bounds__(kThreads) option_logits_kernel(OptionLogitsOperands args) {
  wait_for_earlier_kernels();
  __shared__ float partial[kWarpSize];
  constexpr float kLexicalFloor = 1e-12f, kJointFloor = 1e-8f;
  const std::int64_t option = blockIdx.x, question = args.owner[option];
  CosineSums prior, joint;
  prior.add(args.lexical.row(option), args.anchor.row(question), args.hidden_size);
  joint.add(args.fields.row(question), args.options.row(option), args.width);
  prior.reduce(partial);
  joint.reduce(partial);
  if (threadIdx.x > 0) return;
  args.out[option] = args.prior_scale * prior.cosine(kLexicalFloor) +
                     args.residual_gate * (args.joint_scale * joint.cosine(kJointFloor) + *args.residual.row(option));
}

dim3 rows_and_columns(std::int64_t num_rows, std::int64_t width, std::int64_t per_thread) {
  return dim3(blocks_for(num_rows, 1), blocks_for(width, kThreads * per_thread));
}

}  // namespace

void CudaOps::do_span_mean(const SpanMean& args) {
  const std::int64_t num_spans = args.spans.size(0), width = args.out.size(1);
  if (num_spans == 0) return;
  const std::int32_t* index =
      args.index ? staging_.bring(args.index.as<std::int32_t>(), args.index.num_elements()) : nullptr;
  const std::int32_t* spans = staging_.bring(args.spans.as<std::int32_t>(), 2 * num_spans);
  with_type(args.rows.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch("span_mean", stream_.get(), early(dim3(blocks_for(num_spans, 1), blocks_for(width, kSpanColumns)), kThreads),
           span_mean_kernel<T>, const_rows<T>(args.rows), index, spans, width, rows_are_aligned(args.rows),
           rows_of<float>(args.out));
  });
}

void CudaOps::do_gelu(const Gelu& args) {
  with_type(args.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch("gelu", stream_.get(), early(rows_and_columns(args.x.size(0), args.x.size(1), kGroup), kThreads),
           gelu_kernel<T>, rows_of<T>(args.x), args.x.size(1), args.form == GeluForm::kTanh, rows_are_aligned(args.x));
  });
}

void CudaOps::do_add_rows(const AddRows& args) {
  const std::int64_t num_rows = args.x.size(0), width = args.x.size(1);
  if (num_rows == 0) return;
  const std::int32_t* index = args.index ? staging_.bring(args.index.as<std::int32_t>(), num_rows) : nullptr;
  with_type(args.x.dtype(), [&](auto x_zero) {
    with_type(args.rows.dtype(), [&](auto rows_zero) {
      using X = decltype(x_zero);
      using T = decltype(rows_zero);
      launch("add_rows", stream_.get(), early(rows_and_columns(num_rows, width, 1), kThreads), add_rows_kernel<X, T>,
             rows_of<X>(args.x), const_rows<T>(args.rows), index, width);
    });
  });
}

void CudaOps::do_option_features(const OptionFeatures& args) {
  const std::int64_t num_options = args.options.size(0), width = args.fields.size(1);
  if (num_options == 0) return;
  launch("option_features", stream_.get(), early(rows_and_columns(num_options, width, 1), kThreads),
         option_features_kernel, const_rows<float>(args.fields), const_rows<float>(args.options),
         staging_.bring(args.owner.as<std::int32_t>(), num_options), width, rows_of<float>(args.out));
}

void CudaOps::do_option_logits(const OptionLogits& args) {
  const std::int64_t num_options = args.options.size(0);
  if (num_options == 0) return;
  launch("option_logits", stream_.get(), early(dim3(blocks_for(num_options, 1)), kThreads), option_logits_kernel,
         OptionLogitsOperands{
             const_rows<float>(args.fields), const_rows<float>(args.options), const_rows<float>(args.anchor),
             const_rows<float>(args.lexical), const_rows<float>(args.residual),
             staging_.bring(args.owner.as<std::int32_t>(), num_options), args.fields.size(1), args.anchor.size(1),
             args.prior_scale, args.joint_scale, args.residual_gate, args.out.as<float>()});
}

}  // namespace treble::cuda
