#include "cuda/choose_delta_rule.h"
#include "cuda/cuda_ops.h"
#include "cuda/launch.cuh"
#include "cuda/rows.cuh"

// The gated delta rule as it is written, token after token in fp32. A block of one warp takes 32 value features of a
// head and keeps their columns of the state in shared memory. Limit: latency; this is for head sizes that the chunked
// kernel does not take, and to compare it with.

namespace treble::cuda {
namespace {

template <typename T>
struct DeltaRuleSteps {
  Heads<const T> query, key, value;
  Heads<T> out;
  Rows<const float> log_decay, beta;
  float* state;                   // or null
  std::int64_t state_strides[3];  // of sequence, head, key feature
  const std::int32_t* cu_seqlens;
  int key_dim, value_dim, sharing;
  float scale;
};

template <typename T>
__global__ void __launch_bounds__(kWarpSize) delta_rule_steps_kernel(DeltaRuleSteps<T> args) {
  const int sequence = static_cast<int>(blockIdx.x), head = static_cast<int>(blockIdx.y);
  const int key_head = head / args.sharing, key_dim = args.key_dim;
  const int column = static_cast<int>(blockIdx.z) * kWarpSize + lane_id();
  const bool is_there = column < args.value_dim;
  float* state = reinterpret_cast<float*>(dynamic_shared());  // [key_dim, 32]
  float* key = state + key_dim * kWarpSize;
  float* query = key + key_dim;
  float* stored = args.state ? args.state + sequence * args.state_strides[0] + head * args.state_strides[1] : nullptr;
  for (int d = 0; d < key_dim; ++d)
    state[d * kWarpSize + lane_id()] = stored && is_there ? stored[d * args.state_strides[2] + column] : 0.0f;

  for (std::int64_t token = args.cu_seqlens[sequence]; token < args.cu_seqlens[sequence + 1]; ++token) {
    sync_warp();
    for (int d = lane_id(); d < key_dim; d += kWarpSize) {
      key[d] = widen(args.key.row(token, key_head)[d]);
      query[d] = widen(args.query.row(token, key_head)[d]) * args.scale;
    }
    sync_warp();
    const float decay = expf(args.log_decay.row(token)[head]), beta = args.beta.row(token)[head];
    float read = 0;
    for (int d = 0; d < key_dim; ++d) {
      float& own = state[d * kWarpSize + lane_id()];
      own *= decay;
      read += key[d] * own;
    }
    const float value = is_there ? widen(args.value.row(token, head)[column]) : 0.0f;
    const float write = beta * (value - read);
    float out = 0;
    for (int d = 0; d < key_dim; ++d) {
      float& own = state[d * kWarpSize + lane_id()];
      own += key[d] * write;
      out += query[d] * own;
    }
    if (is_there) args.out.row(token, head)[column] = narrow<T>(out);
  }
  if (!stored || !is_there) return;
  for (int d = 0; d < key_dim; ++d) stored[d * args.state_strides[2] + column] = state[d * kWarpSize + lane_id()];
}

}  // namespace

void CudaOps::do_gated_delta_rule(const GatedDeltaRule& args) {
  if (args.query.size(0) == 0) return;
  const DeltaRuleShape shape{args.query.dtype(), args.key.size(2), args.value.size(2),
                             rows_are_aligned(args.query, args.key, args.value, args.out)};
  const DeltaRuleKernel kernel = choose_delta_rule(shape, compute_capability_, options_.kernels);
  if (kernel == DeltaRuleKernel::kSteps) {
    delta_rule_steps(args);
  } else {
    delta_rule_chunks(args, kernel);
  }
}

void CudaOps::delta_rule_steps(const GatedDeltaRule& args) {
  const std::int64_t num_seqs = args.cu_seqlens.size(0) - 1, num_v_heads = args.value.size(1);
  const std::int64_t key_dim = args.key.size(2), value_dim = args.value.size(2);
  const TensorView& state = args.recurrent_state;
  const std::size_t shared_bytes = static_cast<std::size_t>(key_dim * (kWarpSize + 2)) * sizeof(float);
  with_type(args.query.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const DeltaRuleSteps<T> steps{
        const_heads<T>(args.query),
        const_heads<T>(args.key),
        const_heads<T>(args.value),
        heads_of<T>(args.out),
        const_rows<float>(args.log_decay),
        const_rows<float>(args.beta),
        state ? state.template as<float>() : nullptr,
        {state ? state.stride(0) : 0, state ? state.stride(1) : 0, state ? state.stride(2) : 0},
        staging_.bring(args.cu_seqlens.as<std::int32_t>(), num_seqs + 1),
        static_cast<int>(key_dim),
        static_cast<int>(value_dim),
        static_cast<int>(num_v_heads / args.key.size(1)),
        args.scale};
    launch("delta_rule_steps", stream_.get(),
           {dim3(blocks_for(num_seqs, 1), blocks_for(num_v_heads, 1), blocks_for(value_dim, kWarpSize)), kWarpSize,
            shared_bytes},
           delta_rule_steps_kernel<T>, steps);
  });
}

}  // namespace treble::cuda
