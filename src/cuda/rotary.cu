#include <cmath>
#include <vector>

#include "cuda/cuda_ops.h"
#include "cuda/launch.cuh"
#include "cuda/rows.cuh"

// Rotary tables, one thread an angle; and the rotations, one warp a head, whose features wait in shared memory for
// their partners.

namespace treble::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarpSize;

/// theta^(-i / count), in fp32 like the reference: at position 16383 the last bit is 0.001 rad. On the host, whose
/// powers are those of the CPU backend.
std::vector<float> rotary_frequencies(float theta, std::int64_t count) {
  std::vector<float> frequencies;
  for (std::int64_t i = 0; i < count; ++i)
    frequencies.push_back(1.0f / std::pow(theta, static_cast<float>(i) / static_cast<float>(count)));
  return frequencies;
}

/// Frequencies of each axis that interleave; the rest belongs to time.
struct Sections {
  int of_axis[3];
};

template <typename T>
__global__ void __launch_bounds__(kThreads)
    rotary_tables_kernel(Rows<const std::int32_t> positions, const float* frequencies, int num_frequencies,
                         Sections sections, std::int64_t num_tokens, Rows<T> cos, Rows<T> sin) {
  const std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (item >= num_tokens * num_frequencies) return;
  const std::int64_t token = item / num_frequencies;
  const int i = static_cast<int>(item % num_frequencies);
  const int axis = i < 3 * sections.of_axis[i % 3] ? i % 3 : 0;
  const float angle = static_cast<float>(positions.row(axis)[token]) * frequencies[i];
  cos.row(token)[i] = narrow<T>(cosf(angle));
  sin.row(token)[i] = narrow<T>(sinf(angle));
}

__global__ void __launch_bounds__(kThreads)
    axial_rotary_tables_kernel(const std::int32_t* positions, const float* frequencies, int per_axis,
                               std::int64_t num_rows, Rows<float> cos, Rows<float> sin) {
  const std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (item >= num_rows * 2 * per_axis) return;
  const std::int64_t row = item / (2 * per_axis);
  const int i = static_cast<int>(item % (2 * per_axis));
  const float angle = static_cast<float>(positions[(i / per_axis) * num_rows + row]) * frequencies[i % per_axis];
  cos.row(row)[i] = cosf(angle);
  sin.row(row)[i] = sinf(angle);
}

/// Both sides' heads of a token, one after the other: query heads first.
template <typename T>
struct QueryAndKey {
  Heads<T> query, key;
  int num_q_heads, num_kv_heads, head_dim;
  std::int64_t num_tokens;
};

/// Norm and partial rotation of one head. @param features  [head_dim] in shared memory
template <typename T>
__device__ void norm_and_rotate(T* head, const bfloat16* weight, const T* cos, const T* sin, float eps, int head_dim,
                                int half, float* features) {
  float squares = 0;
  for (int i = lane_id(); i < head_dim; i += kWarpSize) {
    features[i] = widen(head[i]);
    squares += features[i] * features[i];
  }
  const float normalise = 1.0f / sqrtf(warp_sum(squares) / static_cast<float>(head_dim) + eps);
  for (int i = lane_id(); i < head_dim; i += kWarpSize)
    features[i] = round_to<T>(features[i] * normalise * (1.0f + widen(weight[i])));
  sync_warp();
  for (int i = lane_id(); i < head_dim; i += kWarpSize) {
    float x = features[i];
    if (i < 2 * half) {
      // The reference rounds both products and their sum.
      const int pair = i < half ? i : i - half;
      const float c = widen(cos[pair]), s = widen(sin[pair]);
      const float partner = i < half ? -features[i + half] : features[pair];
      x = round_to<T>(x * c) + round_to<T>(partner * s);
    }
    head[i] = narrow<T>(x);
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    attention_inputs_kernel(QueryAndKey<T> heads, const bfloat16* q_norm, const bfloat16* k_norm, Rows<const T> cos,
                            Rows<const T> sin, int half, float eps) {
  auto* features = reinterpret_cast<float*>(dynamic_shared()) + warp_id() * heads.head_dim;
  const int head = static_cast<int>(blockIdx.y) * kWarps + warp_id();
  if (head >= heads.num_q_heads + heads.num_kv_heads) return;
  const std::int64_t token = blockIdx.x;
  const bool is_query = head < heads.num_q_heads;
  T* row = is_query ? heads.query.row(token, head) : heads.key.row(token, head - heads.num_q_heads);
  norm_and_rotate(row, is_query ? q_norm : k_norm, cos.row(token), sin.row(token), eps, heads.head_dim, half, features);
}

/// Heads of 256 features whose first 64 turn: eight neighbours in a lane, partners four lanes apart.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    attention_inputs_256_kernel(QueryAndKey<T> heads, const bfloat16* q_norm, const bfloat16* k_norm, Rows<const T> cos,
                                Rows<const T> sin, float eps) {
  constexpr int kHeadDim = kWarpSize * kGroup, kHalf = 32, kHalfLanes = kHalf / kGroup;
  const int head = static_cast<int>(blockIdx.y) * kWarps + warp_id();
  if (head >= heads.num_q_heads + heads.num_kv_heads) return;
  const std::int64_t token = blockIdx.x;
  const bool is_query = head < heads.num_q_heads;
  T* row = is_query ? heads.query.row(token, head) : heads.key.row(token, head - heads.num_q_heads);
  wait_for_earlier_kernels();
  const int first = lane_id() * kGroup;
  float x[kGroup], gain[kGroup], c[kGroup], s[kGroup];
  load_group(row, first, kHeadDim, true, x);
  load_group(is_query ? q_norm : k_norm, first, kHeadDim, true, gain);
  load_group(cos.row(token), first % kHalf, kHalf, true, c);
  load_group(sin.row(token), first % kHalf, kHalf, true, s);
  float squares = 0;
#pragma unroll
  for (int j = 0; j < kGroup; ++j) squares += x[j] * x[j];
  const float normalise = 1.0f / sqrtf(warp_sum(squares) / kHeadDim + eps);
#pragma unroll
  for (int j = 0; j < kGroup; ++j) {
    x[j] = round_to<T>(x[j] * normalise * (1.0f + gain[j]));
    const float partner = shuffle_xor(x[j], kHalfLanes);
    // The reference rounds both products and their sum.
    const float turned = round_to<T>(x[j] * c[j]) + round_to<T>((first < kHalf ? -partner : partner) * s[j]);
    if (first < 2 * kHalf) x[j] = turned;
  }
  store_group(x, row, first, kHeadDim, true);
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    rotate_heads_kernel(QueryAndKey<T> heads, Rows<const float> cos, Rows<const float> sin) {
  const int num_heads = heads.num_q_heads + heads.num_kv_heads, half = heads.head_dim / 2;
  const std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * kWarps + warp_id();
  if (item >= heads.num_tokens * num_heads) return;
  const std::int64_t token = item / num_heads;
  const int head = static_cast<int>(item % num_heads);
  T* row = head < heads.num_q_heads ? heads.query.row(token, head) : heads.key.row(token, head - heads.num_q_heads);
  for (int i = lane_id(); i < half; i += kWarpSize) {
    const float a = widen(row[i]), b = widen(row[half + i]);
    const float c = cos.row(token)[i], s = sin.row(token)[i];
    row[i] = narrow<T>(a * c - b * s);
    row[half + i] = narrow<T>(b * c + a * s);
  }
}

template <typename T>
QueryAndKey<T> query_and_key(const TensorView& query, const TensorView& key) {
  return {heads_of<T>(query),
          heads_of<T>(key),
          static_cast<int>(query.size(1)),
          static_cast<int>(key.size(1)),
          static_cast<int>(query.size(2)),
          query.size(0)};
}

}  // namespace

void CudaOps::do_rotary_tables(const RotaryTables& args) {
  const std::int64_t num_tokens = args.cos.size(0), num_frequencies = args.cos.size(1);
  const std::vector<float> frequencies = rotary_frequencies(args.theta, num_frequencies);
  const float* on_device = staging_.bring(frequencies.data(), num_frequencies);
  with_type(args.cos.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch("rotary_tables", stream_.get(), {dim3(blocks_for(num_tokens * num_frequencies, kThreads)), kThreads},
           rotary_tables_kernel<T>, const_rows<std::int32_t>(args.positions), on_device,
           static_cast<int>(num_frequencies), Sections{{args.section[0], args.section[1], args.section[2]}}, num_tokens,
           rows_of<T>(args.cos), rows_of<T>(args.sin));
  });
}

void CudaOps::do_axial_rotary_tables(const AxialRotaryTables& args) {
  const std::int64_t num_rows = args.cos.size(0), per_axis = args.cos.size(1) / 2;
  const std::vector<float> frequencies = rotary_frequencies(args.theta, per_axis);
  const float* on_device = staging_.bring(frequencies.data(), per_axis);
  launch("axial_rotary_tables", stream_.get(), {dim3(blocks_for(num_rows * 2 * per_axis, kThreads)), kThreads},
         axial_rotary_tables_kernel, staging_.bring(args.positions.as<std::int32_t>(), 2 * num_rows), on_device,
         static_cast<int>(per_axis), num_rows, rows_of<float>(args.cos), rows_of<float>(args.sin));
}

void CudaOps::do_attention_inputs(const AttentionInputs& args) {
  const std::int64_t num_tokens = args.query.size(0), head_dim = args.query.size(2), half = args.cos.size(1);
  const dim3 grid(blocks_for(num_tokens, 1), blocks_for(args.query.size(1) + args.key.size(1), kWarps));
  const bool is_usual = head_dim == 256 && half == 32 &&
                        rows_are_aligned(args.query, args.key, args.q_norm, args.k_norm, args.cos, args.sin);
  with_type(args.query.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const QueryAndKey<T> heads = query_and_key<T>(args.query, args.key);
    const auto* q_norm = args.q_norm.as<bfloat16>();
    const auto* k_norm = args.k_norm.as<bfloat16>();
    const Rows<const T> cos = const_rows<T>(args.cos), sin = const_rows<T>(args.sin);
    if (is_usual) {
      launch("attention_inputs", stream_.get(), {.grid = grid, .num_threads = kThreads, .starts_early = true},
             attention_inputs_256_kernel<T>, heads, q_norm, k_norm, cos, sin, args.eps);
      return;
    }
    const std::size_t shared_bytes = static_cast<std::size_t>(kWarps * head_dim) * sizeof(float);
    launch("attention_inputs", stream_.get(), {grid, kThreads, shared_bytes}, attention_inputs_kernel<T>, heads, q_norm,
           k_norm, cos, sin, static_cast<int>(half), args.eps);
  });
}

void CudaOps::do_rotate_heads(const RotateHeads& args) {
  const std::int64_t num_items = args.query.size(0) * (args.query.size(1) + args.key.size(1));
  with_type(args.query.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch("rotate_heads", stream_.get(), {dim3(blocks_for(num_items, kWarps)), kThreads}, rotate_heads_kernel<T>,
           query_and_key<T>(args.query, args.key), const_rows<float>(args.cos), const_rows<float>(args.sin));
  });
}

}  // namespace treble::cuda
