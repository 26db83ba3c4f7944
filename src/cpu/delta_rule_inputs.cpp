#include "cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/delta_rule_inputs.cpp"
#include <hwy/foreach_target.h>  // keep in this order
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <vector>

#include "cpu/cpu_ops.h"
#include "cpu/delta_rule_inputs.h"
#include "cpu/simd-inl.h"
#include "cpu/tile.h"

HWY_BEFORE_NAMESPACE();
namespace treble::cpu::HWY_NAMESPACE {

/// Convolution and SiLU of one head's channels at one token, not rounded.
/// @param inputs   [num_taps] the channels of the tokens that the taps meet, oldest first
/// @param weights  [num_taps, num_channels], a tap's weights `weight_stride` apart
template <typename T>
HWY_INLINE void convolve(std::int64_t num_taps, const T* const* inputs, std::int64_t first_channel,
                         std::int64_t num_channels, const float* weights, std::int64_t weight_stride, float* out) {
  for (std::int64_t c = 0; c < num_channels; c += kLanes) {
    VecF32 sum = zero();
    for (std::int64_t tap = 0; tap < num_taps; ++tap) {
      const VecF32 weight = load(weights + tap * weight_stride + c, num_channels - c);
      sum = hn::MulAdd(weight, load(inputs[tap] + first_channel + c, num_channels - c), sum);
    }
    store(silu(sum), out + c);
  }
}

/// The convolved part of a task: `num_heads` heads whose channels start at `first_channel` of `mixed`.
template <typename T>
void run_channels(const DeltaRuleInputs& args, const DeltaRuleInputsTask& task, const TensorView& out,
                  std::int64_t first_channel, bool normalise, float* scratch) {
  const std::int64_t head_dim = out.size(2);
  const std::int64_t num_channels = task.num_heads * head_dim;
  const std::int64_t num_taps = args.conv_weight.size(1);

  float* activated = scratch;  // [head_dim], up to a whole vector
  float* weights = scratch + round_up(head_dim, kTileColumns);
  for (std::int64_t c = 0; c < num_channels; ++c) {
    const bfloat16* taps = args.conv_weight.as<bfloat16>() + (first_channel + c) * args.conv_weight.stride(0);
    for (std::int64_t tap = 0; tap < num_taps; ++tap) weights[tap * num_channels + c] = to_float(taps[tap]);
  }

  // The tokens before the sequence's first.
  std::vector<T> history(static_cast<std::size_t>((num_taps - 1) * num_channels), T{});
  if (args.conv_state && task.begin - task.sequence_begin < num_taps - 1) {
    for (std::int64_t c = 0; c < num_channels; ++c) {
      const T* state = args.conv_state.as<T>() + task.sequence * args.conv_state.stride(0) +
                       (first_channel + c) * args.conv_state.stride(1);
      for (std::int64_t i = 0; i < num_taps - 1; ++i)
        history[static_cast<std::size_t>(i * num_channels + c)] = state[i];
    }
  }

  std::vector<const T*> inputs(static_cast<std::size_t>(num_taps));
  for (std::int64_t token = task.begin; token < task.end; ++token) {
    for (std::int64_t tap = 0; tap < num_taps; ++tap) {
      const std::int64_t source = token - (num_taps - 1) + tap;
      inputs[static_cast<std::size_t>(tap)] =
          source >= task.sequence_begin ? args.mixed.as<T>() + source * args.mixed.stride(0) + first_channel
                                        : history.data() + (source - task.sequence_begin + num_taps - 1) * num_channels;
    }
    for (std::int64_t head = 0; head < task.num_heads; ++head) {
      const std::int64_t channel = head * head_dim;
      if (num_taps == 4) {  // the usual size, with an unrolled loop
        convolve(4, inputs.data(), channel, head_dim, weights + channel, num_channels, activated);
      } else {
        convolve(num_taps, inputs.data(), channel, head_dim, weights + channel, num_channels, activated);
      }
      float factor = 1;
      if (normalise) {
        VecF32 squares = zero();
        for (std::int64_t i = 0; i < head_dim; i += kLanes) {
          const VecF32 x = load(activated + i, head_dim - i);
          squares = hn::MulAdd(x, x, squares);
        }
        factor = 1.0f / std::sqrt(sum(squares) + 1e-6f);
      }
      T* row = out.as<T>() + token * out.stride(0) + (task.first_head + head) * out.stride(1);
      for (std::int64_t i = 0; i < head_dim; i += kLanes)
        store(hn::Mul(load(activated + i), fill(factor)), row + i, head_dim - i);
    }
  }
}

/// log(1 + exp(x))
HWY_INLINE VecF32 softplus(VecF32 x) {
  return hn::IfThenElse(hn::Gt(x, fill(20.0f)), x, hn::Log1p(F32(), exponential(x)));
}

template <typename T>
void run_gates(const DeltaRuleInputs& args, const DeltaRuleInputsTask& task) {
  const std::int64_t num_v_heads = args.value.size(1);
  for (std::int64_t n = 0; n < num_v_heads; n += kLanes) {
    const std::int64_t count = num_v_heads - n;
    const VecF32 rate = hn::Neg(exponential(load(args.A_log.as<bfloat16>() + n, count)));
    const VecF32 bias = load(args.dt_bias.as<bfloat16>() + n, count);
    for (std::int64_t token = task.begin; token < task.end; ++token) {
      const VecF32 a = load(args.a.as<T>() + token * args.a.stride(0) + n, count);
      const VecF32 b = load(args.b.as<T>() + token * args.b.stride(0) + n, count);
      store(hn::Mul(rate, softplus(hn::Add(a, bias))),
            args.log_decay.as<float>() + token * args.log_decay.stride(0) + n, count);
      store(round_to<T>(sigmoid(b)), args.beta.as<float>() + token * args.beta.stride(0) + n, count);
    }
  }
}

template <typename T>
void run_task(const DeltaRuleInputs& args, const DeltaRuleInputsTask& task, float* scratch) {
  using Part = DeltaRuleInputsTask::Part;
  const std::int64_t key_dim = args.key.size(1) * args.key.size(2);
  const std::int64_t key_channel = task.first_head * args.key.size(2);
  switch (task.part) {
    case Part::kQuery:
      return run_channels<T>(args, task, args.query, key_channel, true, scratch);
    case Part::kKey:
      return run_channels<T>(args, task, args.key, key_dim + key_channel, true, scratch);
    case Part::kValue:
      return run_channels<T>(args, task, args.value, 2 * key_dim + task.first_head * args.value.size(2), false,
                             scratch);
    case Part::kGates:
      return run_gates<T>(args, task);
  }
}

void run_delta_rule_inputs_task(const DeltaRuleInputs& args, const DeltaRuleInputsTask& task, float* scratch) {
  (args.mixed.dtype() == DType::kF32 ? run_task<float> : run_task<bfloat16>)(args, task, scratch);
}

}  // namespace treble::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treble::cpu {
namespace {

HWY_EXPORT(run_delta_rule_inputs_task);

constexpr std::int64_t kTaskTokens = 256;    // enough that transposing the weights does not show
constexpr std::int64_t kTaskChannels = 512;  // a few rows of them stay in the first-level cache

std::int64_t heads_per_task(const TensorView& heads) {
  return std::clamp<std::int64_t>(kTaskChannels / heads.size(2), 1, heads.size(1));
}

std::vector<DeltaRuleInputsTask> make_tasks(const DeltaRuleInputs& args) {
  using Part = DeltaRuleInputsTask::Part;
  struct Heads {
    Part part;
    std::int64_t num_heads, heads_per_task;
  };
  const std::initializer_list<Heads> parts = {
      {Part::kQuery, args.query.size(1), heads_per_task(args.query)},
      {Part::kKey, args.key.size(1), heads_per_task(args.key)},
      {Part::kValue, args.value.size(1), heads_per_task(args.value)},
      {Part::kGates, 1, 1},
  };
  const std::int32_t* borders = args.cu_seqlens.as<std::int32_t>();
  std::vector<DeltaRuleInputsTask> tasks;
  for (std::int64_t n = 0; n + 1 < args.cu_seqlens.size(0); ++n) {
    for (std::int64_t begin = borders[n]; begin < borders[n + 1]; begin += kTaskTokens) {
      const std::int64_t end = std::min<std::int64_t>(begin + kTaskTokens, borders[n + 1]);
      for (const Heads& heads : parts) {
        for (std::int64_t head = 0; head < heads.num_heads; head += heads.heads_per_task) {
          const std::int64_t num_heads = std::min(heads.heads_per_task, heads.num_heads - head);
          tasks.push_back({n, borders[n], begin, end, heads.part, head, num_heads});
        }
      }
    }
  }
  return tasks;
}

/// The last tokens of each sequence; of one shorter than the state, what was there moves up.
template <typename T>
void update_conv_state(const DeltaRuleInputs& args) {
  const std::int32_t* borders = args.cu_seqlens.as<std::int32_t>();
  const std::int64_t conv_dim = args.mixed.size(1);
  const std::int64_t state_size = args.conv_state.size(2);
  parallel_for(args.conv_state.size(0), [&](std::int64_t n) {
    const std::int64_t length = borders[n + 1] - borders[n];
    for (std::int64_t c = 0; c < conv_dim; ++c) {
      T* state = args.conv_state.as<T>() + n * args.conv_state.stride(0) + c * args.conv_state.stride(1);
      for (std::int64_t i = 0; i < state_size; ++i) {
        const std::int64_t source = length - state_size + i;
        state[i] =
            source >= 0 ? args.mixed.as<T>()[(borders[n] + source) * args.mixed.stride(0) + c] : state[i + length];
      }
    }
  });
}

}  // namespace

void CpuOps::do_delta_rule_inputs(const DeltaRuleInputs& args) {
  const std::vector<DeltaRuleInputsTask> tasks = make_tasks(args);
  const std::int64_t num_taps = args.conv_weight.size(1);
  const std::int64_t widest_head = std::max(args.key.size(2), args.value.size(2));
  const std::int64_t widest_task =
      std::max(args.key.size(2) * heads_per_task(args.key), args.value.size(2) * heads_per_task(args.value));
  const std::int64_t scratch_floats = round_up(widest_head, kTileColumns) + num_taps * widest_task;
  for_each_task(scratch_, static_cast<std::int64_t>(tasks.size()), scratch_floats, [&](std::int64_t i, float* scratch) {
    HWY_DYNAMIC_DISPATCH(run_delta_rule_inputs_task)(args, tasks[static_cast<std::size_t>(i)], scratch);
  });
  // Not before: the first tokens of a sequence read the state.
  if (!args.conv_state) return;
  if (args.conv_state.dtype() == DType::kF32) {
    update_conv_state<float>(args);
  } else {
    update_conv_state<bfloat16>(args);
  }
}

}  // namespace treble::cpu
#endif
