#include <algorithm>
#include <type_traits>

#include "cuda/cuda_ops.h"
#include "cuda/launch.cuh"
#include "cuda/rows.cuh"

// Convolution, SiLU and L2 norm: a warp takes a head and kStrip tokens, four neighbouring features in each lane, all
// inputs in registers; other sizes than the model's take a plainer form. The gates and the new
// convolution state are kernels of their own. Limit: device memory; every input is read once and (kernel size - 1) /
// kStrip times more from cache.

namespace treble::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarpSize;
constexpr int kStrip = 8;     // tokens
constexpr int kFeatures = 4;  // neighbours in a lane
constexpr float kSquaresEps = 1e-6f;

/// Four neighbouring elements as they lie in memory: one access.
template <typename T>
struct Four {
  using Words = std::conditional_t<sizeof(T) == 2, uint2, uint4>;
  Words words{};

  __device__ __forceinline__ void load(const T* from) { words = *reinterpret_cast<const Words*>(from); }
  __device__ __forceinline__ void store(T* to) const { *reinterpret_cast<Words*>(to) = words; }

  __device__ __forceinline__ void unpack(float (&values)[kFeatures]) const {
    if constexpr (sizeof(T) == 2) {
      values[0] = low_bf16(words.x), values[1] = high_bf16(words.x);
      values[2] = low_bf16(words.y), values[3] = high_bf16(words.y);
    } else {
      values[0] = float_of(words.x), values[1] = float_of(words.y);
      values[2] = float_of(words.z), values[3] = float_of(words.w);
    }
  }
  /// Rounded to T.
  __device__ __forceinline__ void pack(const float (&values)[kFeatures]) {
    if constexpr (sizeof(T) == 2) {
      words = {pack_bf16(values[0], values[1]), pack_bf16(values[2], values[3])};
    } else {
      words = {bits_of(values[0]), bits_of(values[1]), bits_of(values[2]), bits_of(values[3])};
    }
  }
};

template <typename T>
struct ConvolvedHeads {
  Rows<const T> mixed;
  const bfloat16* weight;  // [conv_dim, num_taps]
  const T* state;          // [N, conv_dim, num_taps - 1], or null: zeros
  std::int64_t state_stride;
  const std::int32_t* cu_seqlens;
  int num_seqs, num_taps;
  std::int32_t num_tokens;
  std::int64_t conv_dim;
  int num_k_heads, num_v_heads, key_head_dim, value_head_dim;
  Heads<T> query, key, value;
};

/// Which head a warp takes, of the query's, the key's and the value's in a row.
template <typename T>
struct OwnHead {
  Heads<T> out;
  int head, head_dim;
  std::int64_t first_channel;
  bool is_normalised;

  __device__ OwnHead(const ConvolvedHeads<T>& args, int index) {
    const bool is_query = index < args.num_k_heads, is_value = index >= 2 * args.num_k_heads;
    out = is_query ? args.query : is_value ? args.value : args.key;
    head = is_query ? index : is_value ? index - 2 * args.num_k_heads : index - args.num_k_heads;
    head_dim = is_value ? args.value_head_dim : args.key_head_dim;
    is_normalised = !is_value;
    const std::int64_t keys = 2 * static_cast<std::int64_t>(args.num_k_heads) * args.key_head_dim;
    first_channel =
        is_value ? keys + static_cast<std::int64_t>(head) * head_dim : static_cast<std::int64_t>(index) * head_dim;
  }
};

/// An input of a token of `sequence`, which may lie before the sequence's first.
template <typename T>
__device__ __forceinline__ float input_of(const ConvolvedHeads<T>& args, int sequence, std::int32_t source,
                                          std::int64_t channel) {
  const std::int32_t before = args.cu_seqlens[sequence] - source;
  if (before <= 0) return widen(args.mixed.row(source)[channel]);
  const int state_size = args.num_taps - 1;
  if (!args.state) return 0;
  return widen(args.state[sequence * args.state_stride + channel * state_size + state_size - before]);
}

/// Inputs of a token that may lie before its sequence: in the batch, in the state, or zeros.
template <typename T>
__device__ __forceinline__ void load_before(const ConvolvedHeads<T>& args, int sequence, std::int32_t source,
                                            std::int64_t channel, Four<T>& four) {
  if (source >= args.cu_seqlens[sequence]) return four.load(args.mixed.row(source) + channel);
  float values[kFeatures];
#pragma unroll
  for (int j = 0; j < kFeatures; ++j) values[j] = input_of(args, sequence, source, channel + j);
  four.pack(values);
}

/// The usual sizes: four taps, heads of at most 128 features, everything aligned. All inputs of a strip are on their
/// way at once. Blocks next to each other take the heads of the same tokens, whose rows are whole pages of memory.
template <typename T>
__global__ void __launch_bounds__(kThreads) convolve_kernel(ConvolvedHeads<T> args) {
  constexpr int kTaps = 4, kBefore = kTaps - 1;
  const int index = static_cast<int>(blockIdx.x) * kWarps + warp_id();
  if (index >= 2 * args.num_k_heads + args.num_v_heads) return;
  const OwnHead<T> own(args, index);
  const auto begin = static_cast<std::int32_t>(blockIdx.y) * kStrip;
  const std::int32_t end = min(begin + kStrip, args.num_tokens);
  const int feature = lane_id() * kFeatures;
  const bool is_there = feature < own.head_dim;  // the other lanes compute with zeros
  const std::int64_t channel = own.first_channel + (is_there ? feature : 0);

  wait_for_earlier_kernels();
  Four<T> inputs[kBefore + kStrip];
  const T* column = args.mixed.row(begin) + channel;
#pragma unroll
  for (int i = 0; i < kStrip; ++i) {
    if (is_there && begin + i < end) inputs[kBefore + i].load(column + i * args.mixed.stride);
  }
  float weights[kFeatures * kTaps / kGroup][kGroup];  // of a feature its taps, feature after feature
#pragma unroll
  for (int i = 0; i < kFeatures * kTaps / kGroup; ++i)
    load_group(args.weight, channel * kTaps + i * kGroup, args.conv_dim * kTaps, true, weights[i]);
  int sequence = sequence_of(args.cu_seqlens, args.num_seqs, begin);
  std::int32_t sequence_end = args.cu_seqlens[sequence + 1];
  if (is_there) {
#pragma unroll
    for (int i = 0; i < kBefore; ++i) load_before(args, sequence, begin - kBefore + i, channel, inputs[i]);
  }

#pragma unroll
  for (int i = 0; i < kStrip; ++i) {
    const std::int32_t token = begin + i;
    if (token >= end) break;
    if (token >= sequence_end) {  // another sequence begins in this strip
      while (token >= sequence_end) sequence_end = args.cu_seqlens[++sequence + 1];
      if (is_there) {
#pragma unroll
        for (int tap = 0; tap < kBefore; ++tap)
          load_before(args, sequence, token - kBefore + tap, channel, inputs[i + tap]);
      }
    }
    float values[kFeatures] = {};
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) {
      float input[kFeatures];
      inputs[i + tap].unpack(input);
#pragma unroll
      for (int j = 0; j < kFeatures; ++j)
        values[j] += weights[(j * kTaps + tap) / kGroup][(j * kTaps + tap) % kGroup] * input[j];
    }
#pragma unroll
    for (int j = 0; j < kFeatures; ++j) values[j] = silu_as<T>(values[j]);
    if (own.is_normalised) {
      float squares = 0;
#pragma unroll
      for (int j = 0; j < kFeatures; ++j) squares += values[j] * values[j];
      const float factor = inverse_sqrt_as<T>(warp_sum(squares) + kSquaresEps);
#pragma unroll
      for (int j = 0; j < kFeatures; ++j) values[j] *= factor;
    }
    Four<T> result;
    result.pack(values);
    if (is_there) result.store(own.out.row(token, own.head) + feature);
  }
}

/// Any sizes: a warp takes one token, and computes its features twice.
template <typename T>
__global__ void __launch_bounds__(kThreads) convolve_any_kernel(ConvolvedHeads<T> args) {
  const int index = static_cast<int>(blockIdx.y) * kWarps + warp_id();
  if (index >= 2 * args.num_k_heads + args.num_v_heads) return;
  const OwnHead<T> own(args, index);
  wait_for_earlier_kernels();
  const auto token = static_cast<std::int32_t>(blockIdx.x);
  const int sequence = sequence_of(args.cu_seqlens, args.num_seqs, token);
  const auto value_of = [&](int feature) {
    const std::int64_t channel = own.first_channel + feature;
    float sum = 0;
    for (int tap = 0; tap < args.num_taps; ++tap) {
      sum += widen(args.weight[channel * args.num_taps + tap]) *
             input_of(args, sequence, token - args.num_taps + 1 + tap, channel);
    }
    return silu_as<T>(sum);
  };
  float factor = 1;
  if (own.is_normalised) {
    float squares = 0;
    for (int i = lane_id(); i < own.head_dim; i += kWarpSize) squares += value_of(i) * value_of(i);
    factor = 1.0f / sqrtf(warp_sum(squares) + kSquaresEps);
  }
  for (int i = lane_id(); i < own.head_dim; i += kWarpSize)
    own.out.row(token, own.head)[i] = narrow<T>(value_of(i) * factor);
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    gates_kernel(Rows<const T> a, Rows<const T> b, const bfloat16* A_log, const bfloat16* dt_bias,
                 std::int64_t num_tokens, int num_heads, Rows<float> log_decay, Rows<float> beta) {
  const std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (item >= num_tokens * num_heads) return;
  wait_for_earlier_kernels();
  const std::int64_t token = item / num_heads;
  const int head = static_cast<int>(item % num_heads);
  const float x = widen(a.row(token)[head]) + widen(dt_bias[head]);
  const float softplus = x > 20.0f ? x : log1pf(expf(x));
  log_decay.row(token)[head] = -expf(widen(A_log[head])) * softplus;
  beta.row(token)[head] = round_to<T>(sigmoid(widen(b.row(token)[head])));
}

/// The last tokens of each sequence; of one shorter than the state, what was there moves up.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    conv_state_kernel(Rows<const T> mixed, const std::int32_t* cu_seqlens, std::int64_t conv_dim, int state_size,
                      T* state, std::int64_t state_stride) {
  const std::int64_t channel = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (channel >= conv_dim) return;
  const std::int32_t begin = cu_seqlens[blockIdx.y], length = cu_seqlens[blockIdx.y + 1] - begin;
  T* own = state + blockIdx.y * state_stride + channel * state_size;
  for (int i = 0; i < state_size; ++i) {
    const std::int32_t source = length - state_size + i;
    own[i] = source >= 0 ? mixed.row(begin + source)[channel] : own[i + length];
  }
}

}  // namespace

void CudaOps::do_delta_rule_inputs(const DeltaRuleInputs& args) {
  const std::int64_t num_tokens = args.mixed.size(0), conv_dim = args.mixed.size(1);
  const std::int64_t num_taps = args.conv_weight.size(1), num_seqs = args.cu_seqlens.size(0) - 1;
  const std::int64_t key_head_dim = args.key.size(2), value_head_dim = args.value.size(2);
  const std::int64_t num_heads = 2 * args.key.size(1) + args.value.size(1);
  if (num_seqs == 0) return;
  const std::int32_t* cu_seqlens = staging_.bring(args.cu_seqlens.as<std::int32_t>(), num_seqs + 1);
  with_type(args.mixed.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const bool is_aligned = rows_are_aligned(args.mixed, args.query, args.key, args.value,
                                             args.conv_weight.reshape({conv_dim * num_taps})) &&
                            key_head_dim % kFeatures == 0 && value_head_dim % kFeatures == 0;
    const ConvolvedHeads<T> heads{const_rows<T>(args.mixed),
                                  args.conv_weight.as<bfloat16>(),
                                  args.conv_state ? args.conv_state.template as<T>() : nullptr,
                                  args.conv_state ? args.conv_state.stride(0) : 0,
                                  cu_seqlens,
                                  static_cast<int>(num_seqs),
                                  static_cast<int>(num_taps),
                                  static_cast<std::int32_t>(num_tokens),
                                  conv_dim,
                                  static_cast<int>(args.key.size(1)),
                                  static_cast<int>(args.value.size(1)),
                                  static_cast<int>(key_head_dim),
                                  static_cast<int>(value_head_dim),
                                  heads_of<T>(args.query),
                                  heads_of<T>(args.key),
                                  heads_of<T>(args.value)};
    const bool is_usual =
        is_aligned && num_taps == 4 && std::max(key_head_dim, value_head_dim) <= kWarpSize * kFeatures;
    launch("delta_rule_inputs", stream_.get(),
           {.grid = is_usual ? dim3(blocks_for(num_heads, kWarps), blocks_for(num_tokens, kStrip))
                             : dim3(blocks_for(num_tokens, 1), blocks_for(num_heads, kWarps)),
            .num_threads = kThreads,
            .starts_early = true},
           is_usual ? convolve_kernel<T> : convolve_any_kernel<T>, heads);
    launch("delta_rule_inputs: gates", stream_.get(),
           {.grid = dim3(blocks_for(num_tokens * args.value.size(1), kThreads)),
            .num_threads = kThreads,
            .starts_early = true},
           gates_kernel<T>, const_rows<T>(args.a), const_rows<T>(args.b), args.A_log.as<bfloat16>(),
           args.dt_bias.as<bfloat16>(), num_tokens, static_cast<int>(args.value.size(1)),
           rows_of<float>(args.log_decay), rows_of<float>(args.beta));
    // Not before: the first tokens of a sequence read the state.
    if (!args.conv_state || num_taps == 1) return;
    launch("delta_rule_inputs: state", stream_.get(),
           {dim3(blocks_for(conv_dim, kThreads), blocks_for(num_seqs, 1)), kThreads}, conv_state_kernel<T>,
           const_rows<T>(args.mixed), cu_seqlens, conv_dim, static_cast<int>(num_taps - 1),
           args.conv_state.template as<T>(), args.conv_state.stride(0));
  });
}

}  // namespace treble::cuda
