#include "cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/head_ops.cpp"
#include <hwy/foreach_target.h>  // keep in this order
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/parallel.h"
#include "cpu/cpu_ops.h"
#include "cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treble::cpu::HWY_NAMESPACE {

template <typename T, typename To>
HWY_INLINE void add_row(const T* from, std::int64_t count, To* to) {
  for (std::int64_t i = 0; i < count; i += kLanes)
    store(hn::Add(load(to + i, count - i), load(from + i, count - i)), to + i, count - i);
}

/// to[i] += rows[row, i], rounded to To.
template <typename To>
HWY_INLINE void add_row_to(const TensorView& rows, std::int64_t row, To* to) {
  const std::int64_t offset = row * rows.stride(0), count = rows.size(1);
  if (rows.dtype() == DType::kBF16) {
    add_row(rows.as<bfloat16>() + offset, count, to);
  } else {
    add_row(rows.as<float>() + offset, count, to);
  }
}

void add_row_of(const TensorView& rows, std::int64_t row, float* to) {
  add_row_to(rows, row, to);
}
void add_row_of_bf16(const TensorView& rows, std::int64_t row, bfloat16* to) {
  add_row_to(rows, row, to);
}

float dot(const float* a, const float* b, std::int64_t count) {
  VecF32 total = zero();
  for (std::int64_t i = 0; i < count; i += kLanes)
    total = hn::MulAdd(load(a + i, count - i), load(b + i, count - i), total);
  return sum(total);
}

template <typename T>
HWY_INLINE void gelu_tanh(T* x, std::int64_t count) {
  // (1 + tanh(u)) / 2 = sigmoid(2u)
  const VecF32 scale = fill(2 * std::numbers::sqrt2_v<float> * std::numbers::inv_sqrtpi_v<float>);
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const VecF32 v = load(x + i, count - i);
    const VecF32 cubic = hn::MulAdd(hn::Mul(hn::Mul(v, v), v), fill(0.044715f), v);
    store(hn::Mul(v, sigmoid(hn::Mul(scale, cubic))), x + i, count - i);
  }
}

void gelu_tanh_row(const TensorView& x, std::int64_t row) {
  const std::int64_t offset = row * x.stride(0);
  if (x.dtype() == DType::kBF16) {
    gelu_tanh(x.as<bfloat16>() + offset, x.size(1));
  } else {
    gelu_tanh(x.as<float>() + offset, x.size(1));
  }
}

}  // namespace treble::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treble::cpu {
namespace {

constexpr std::int64_t kRowsPerTask = 8;

// The exact form runs only in the head and the merger, over few rows.
template <typename T>
void gelu_erf_row(T* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float v = to_float(x[i]);
    const float y = 0.5f * v * std::erfc(-v * (std::numbers::sqrt2_v<float> / 2));
    if constexpr (std::is_same_v<T, bfloat16>) {
      x[i] = to_bfloat16(y);
    } else {
      x[i] = y;
    }
  }
}

const float* row_of(const TensorView& view, std::int64_t row) {
  return view.as<float>() + row * view.stride(0);
}

}  // namespace

HWY_EXPORT(add_row_of);
HWY_EXPORT(add_row_of_bf16);
HWY_EXPORT(dot);
HWY_EXPORT(gelu_tanh_row);

namespace {

/// The norms are floored, so a zero vector has cosine 0 with everything.
float cosine(const float* a, const float* b, std::int64_t count, float floor) {
  const auto norm = [&](const float* x) { return std::max(std::sqrt(HWY_DYNAMIC_DISPATCH(dot)(x, x, count)), floor); };
  return HWY_DYNAMIC_DISPATCH(dot)(a, b, count) / (norm(a) * norm(b));
}

}  // namespace

void CpuOps::do_span_mean(const SpanMean& args) {
  const std::int64_t width = args.out.size(1);
  const std::int32_t* index = args.index ? args.index.as<std::int32_t>() : nullptr;
  parallel_for(args.spans.size(0), [&](std::int64_t s) {
    const std::int32_t* span = args.spans.as<std::int32_t>() + s * args.spans.stride(0);
    float* out = args.out.as<float>() + s * args.out.stride(0);
    std::fill_n(out, width, 0.0f);
    for (std::int32_t t = span[0]; t < span[1]; ++t)
      HWY_DYNAMIC_DISPATCH(add_row_of)(args.rows, index ? index[t] : t, out);
    const float length = static_cast<float>(span[1] - span[0]);
    for (std::int64_t i = 0; i < width; ++i) out[i] /= length;
  });
}

void CpuOps::do_gelu(const Gelu& args) {
  const TensorView& x = args.x;
  const auto run_row = [&](std::int64_t row) {
    if (args.form == GeluForm::kTanh) {
      HWY_DYNAMIC_DISPATCH(gelu_tanh_row)(x, row);
    } else if (x.dtype() == DType::kBF16) {
      gelu_erf_row(x.as<bfloat16>() + row * x.stride(0), x.size(1));
    } else {
      gelu_erf_row(x.as<float>() + row * x.stride(0), x.size(1));
    }
  };
  parallel_ranges(x.size(0), kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) run_row(row);
  });
}

void CpuOps::do_add_rows(const AddRows& args) {
  const std::int32_t* index = args.index ? args.index.as<std::int32_t>() : nullptr;
  parallel_ranges(args.x.size(0), kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = index ? index[i] : i, offset = i * args.x.stride(0);
      if (args.x.dtype() == DType::kBF16) {
        HWY_DYNAMIC_DISPATCH(add_row_of_bf16)(args.rows, row, args.x.as<bfloat16>() + offset);
      } else {
        HWY_DYNAMIC_DISPATCH(add_row_of)(args.rows, row, args.x.as<float>() + offset);
      }
    }
  });
}

void CpuOps::do_option_features(const OptionFeatures& args) {
  const std::int64_t width = args.fields.size(1);
  const std::int32_t* owner = args.owner.as<std::int32_t>();
  for (std::int64_t o = 0; o < args.options.size(0); ++o) {
    const float* field = row_of(args.fields, owner[o]);
    const float* option = row_of(args.options, o);
    float* out = args.out.as<float>() + o * args.out.stride(0);
    for (std::int64_t i = 0; i < width; ++i) {
      out[i] = field[i];
      out[width + i] = option[i];
      out[2 * width + i] = field[i] * option[i];
      out[3 * width + i] = std::abs(field[i] - option[i]);
    }
  }
}

void CpuOps::do_option_logits(const OptionLogits& args) {
  constexpr float kLexicalFloor = 1e-12f, kJointFloor = 1e-8f;
  const std::int32_t* owner = args.owner.as<std::int32_t>();
  for (std::int64_t o = 0; o < args.options.size(0); ++o) {
    const std::int64_t question = owner[o];
    const float prior =
        cosine(row_of(args.lexical, o), row_of(args.anchor, question), args.anchor.size(1), kLexicalFloor);
    const float joint =
        cosine(row_of(args.fields, question), row_of(args.options, o), args.fields.size(1), kJointFloor);
    args.out.as<float>()[o] =
        args.prior_scale * prior + args.residual_gate * (args.joint_scale * joint + *row_of(args.residual, o));
  }
}

}  // namespace treble::cpu
#endif
