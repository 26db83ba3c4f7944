#include "cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/rotary.cpp"
#include <hwy/foreach_target.h>  // keep in this order
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "cpu/cpu_ops.h"
#include "cpu/rms_norm-inl.h"
#include "cpu/rotary_frequencies.h"
#include "cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treble::cpu::HWY_NAMESPACE {

/// Rotates features i and half + i of one head, in place. The reference rounds both products and their sum.
template <typename T>
HWY_INLINE void rotate_head(T* head, const T* cos, const T* sin, std::int64_t half) {
  for (std::int64_t i = 0; i < half; i += kLanes) {
    const VecF32 a = load(head + i, half - i), b = load(head + half + i, half - i);
    const VecF32 c = load(cos + i, half - i), s = load(sin + i, half - i);
    const auto product = [](VecF32 x, VecF32 y) HWY_ATTR { return round_to<T>(hn::Mul(x, y)); };
    store(hn::Sub(product(a, c), product(b, s)), head + i, half - i);
    store(hn::Add(product(b, c), product(a, s)), head + half + i, half - i);
  }
}

template <typename T>
void heads_of(const TensorView& x, const TensorView& norm, const AttentionInputs& args, std::int64_t t) {
  const std::int64_t half = args.cos.size(1);
  for (std::int64_t n = 0; n < x.size(1); ++n) {
    T* head = x.as<T>() + t * x.stride(0) + n * x.stride(1);
    rms_norm_row<T>(head, norm.as<bfloat16>(), args.eps, x.size(2), head);
    rotate_head(head, args.cos.as<T>() + t * args.cos.stride(0), args.sin.as<T>() + t * args.sin.stride(0), half);
  }
}

void attention_inputs_row(const AttentionInputs& args, std::int64_t t) {
  if (args.query.dtype() == DType::kBF16) {
    heads_of<bfloat16>(args.query, args.q_norm, args, t);
    heads_of<bfloat16>(args.key, args.k_norm, args, t);
  } else {
    heads_of<float>(args.query, args.q_norm, args, t);
    heads_of<float>(args.key, args.k_norm, args, t);
  }
}

}  // namespace treble::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treble::cpu {
namespace {

constexpr std::int64_t kTokensPerTask = 16;

/// 0 time, 1 height, 2 width
std::int64_t axis_of(std::int64_t frequency, const std::array<std::int32_t, 3>& section) {
  const std::int64_t axis = frequency % 3;
  return frequency < 3 * section[static_cast<std::size_t>(axis)] ? axis : 0;
}

void store_as(const TensorView& view, std::int64_t offset, float x) {
  if (view.dtype() == DType::kBF16) {
    view.as<bfloat16>()[offset] = to_bfloat16(x);
  } else {
    view.as<float>()[offset] = x;
  }
}

}  // namespace

HWY_EXPORT(attention_inputs_row);

void CpuOps::do_rotary_tables(const RotaryTables& args) {
  const std::int64_t num_frequencies = args.cos.size(1);
  const std::vector<float> frequencies = rotary_frequencies(args.theta, num_frequencies);
  const std::int32_t* positions = args.positions.as<std::int32_t>();
  parallel_ranges(args.cos.size(0), kTokensPerTask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      for (std::int64_t i = 0; i < num_frequencies; ++i) {
        const std::int32_t position = positions[axis_of(i, args.section) * args.positions.stride(0) + t];
        const float angle = static_cast<float>(position) * frequencies[static_cast<std::size_t>(i)];
        store_as(args.cos, t * args.cos.stride(0) + i, std::cos(angle));
        store_as(args.sin, t * args.sin.stride(0) + i, std::sin(angle));
      }
    }
  });
}

void CpuOps::do_attention_inputs(const AttentionInputs& args) {
  parallel_ranges(args.query.size(0), kTokensPerTask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) HWY_DYNAMIC_DISPATCH(attention_inputs_row)(args, t);
  });
}

}  // namespace treble::cpu
#endif
