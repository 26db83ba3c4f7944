#include "cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/norms.cpp"
#include <hwy/foreach_target.h>  // keep in this order
#include <hwy/highway.h>

#include <algorithm>

#include "base/parallel.h"
#include "cpu/cpu_ops.h"
#include "cpu/rms_norm-inl.h"
#include "cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treble::cpu::HWY_NAMESPACE {

template <typename T>
void rms_norm_rows_of(const RmsNorm& args, std::int64_t begin, std::int64_t end) {
  const auto row = [](const TensorView& view, std::int64_t t) { return view.as<T>() + t * view.stride(0); };
  for (std::int64_t t = begin; t < end; ++t) {
    rms_norm_row(row(args.x, t), args.weight.as<bfloat16>(), args.eps, args.x.size(1), row(args.out.plain, t));
  }
}

void rms_norm_rows(const RmsNorm& args, std::int64_t begin, std::int64_t end) {
  if (args.x.dtype() == DType::kBF16) {
    rms_norm_rows_of<bfloat16>(args, begin, end);
  } else {
    rms_norm_rows_of<float>(args, begin, end);
  }
}

template <typename T>
void gated_rms_norm_head(const T* x, const T* gate, const bfloat16* weight, float eps, std::int64_t count, T* out) {
  VecF32 squares = zero();
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const VecF32 value = load(x + i, count - i);
    squares = hn::MulAdd(value, value, squares);
  }
  const VecF32 normalise = inverse_rms(squares, count, eps);
  for (std::int64_t i = 0; i < count; i += kLanes) {
    // The reference rounds before the gain and after it, but not the silu.
    const VecF32 normalised = round_to<T>(hn::Mul(load(x + i, count - i), normalise));
    const VecF32 weighted = round_to<T>(hn::Mul(load(weight + i, count - i), normalised));
    store(hn::Mul(weighted, silu(load(gate + i, count - i))), out + i, count - i);
  }
}

template <typename T>
void gated_rms_norm_rows_of(const GatedRmsNorm& args, std::int64_t begin, std::int64_t end) {
  const std::int64_t num_heads = args.x.size(1), head_dim = args.x.size(2);
  const auto head_row = [](const TensorView& view, std::int64_t t, std::int64_t n) {
    return view.as<T>() + t * view.stride(0) + n * view.stride(1);
  };
  for (std::int64_t t = begin; t < end; ++t) {
    for (std::int64_t n = 0; n < num_heads; ++n) {
      T* out = args.out.plain.as<T>() + t * args.out.plain.stride(0) + n * head_dim;
      gated_rms_norm_head(head_row(args.x, t, n), head_row(args.gate, t, n), args.weight.as<bfloat16>(), args.eps,
                          head_dim, out);
    }
  }
}

void gated_rms_norm_rows(const GatedRmsNorm& args, std::int64_t begin, std::int64_t end) {
  if (args.x.dtype() == DType::kBF16) {
    gated_rms_norm_rows_of<bfloat16>(args, begin, end);
  } else {
    gated_rms_norm_rows_of<float>(args, begin, end);
  }
}

template <typename In, typename Out>
void layer_norm_row(In* x, const In* delta, const bfloat16* weight, const bfloat16* bias, float eps, std::int64_t count,
                    Out* out) {
  VecF32 total = zero();
  for (std::int64_t i = 0; i < count; i += kLanes) {
    VecF32 value = load(x + i, count - i);
    if (delta) {
      value = round_to<In>(hn::Add(value, load(delta + i, count - i)));
      store(value, x + i, count - i);
    }
    total = hn::Add(total, value);
  }
  const VecF32 mean = fill(sum(total) / static_cast<float>(count));

  // A second sweep: the difference of the two moments would lose the digits that a large mean takes.
  VecF32 squares = zero();
  for (std::int64_t i = 0; i < count; i += kLanes) {
    VecF32 centred = hn::Sub(load(x + i, count - i), mean);
    // Lanes past the end hold -mean.
    if (count - i < kLanes)
      centred = hn::IfThenElseZero(hn::FirstN(F32(), static_cast<std::size_t>(count - i)), centred);
    squares = hn::MulAdd(centred, centred, squares);
  }
  const VecF32 normalise = inverse_rms(squares, count, eps);
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const VecF32 normalised = hn::Mul(hn::Sub(load(x + i, count - i), mean), normalise);
    const VecF32 y = hn::Add(hn::Mul(normalised, load(weight + i, count - i)), load(bias + i, count - i));
    store(y, out + i, count - i);
  }
}

template <typename In, typename Out>
void layer_norm_rows_of(const LayerNorm& args, std::int64_t begin, std::int64_t end) {
  const TensorView& out = args.out.plain;
  for (std::int64_t r = begin; r < end; ++r) {
    layer_norm_row(args.x.as<In>() + r * args.x.stride(0),
                   args.delta ? args.delta.as<In>() + r * args.delta.stride(0) : nullptr, args.weight.as<bfloat16>(),
                   args.bias.as<bfloat16>(), args.eps, args.x.size(1), out.as<Out>() + r * out.stride(0));
  }
}

void layer_norm_rows(const LayerNorm& args, std::int64_t begin, std::int64_t end) {
  const bool reads_bf16 = args.x.dtype() == DType::kBF16;
  const bool writes_bf16 = args.out.plain.dtype() == DType::kBF16;
  if (reads_bf16 && writes_bf16) return layer_norm_rows_of<bfloat16, bfloat16>(args, begin, end);
  if (reads_bf16) return layer_norm_rows_of<bfloat16, float>(args, begin, end);
  if (writes_bf16) return layer_norm_rows_of<float, bfloat16>(args, begin, end);
  layer_norm_rows_of<float, float>(args, begin, end);
}

}  // namespace treble::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treble::cpu {
namespace {

/// Rows of this many elements that make a task worth handing to a thread.
std::int64_t rows_per_task(std::int64_t width) {
  return std::max<std::int64_t>(65536 / std::max<std::int64_t>(width, 1), 1);
}

}  // namespace

HWY_EXPORT(rms_norm_rows);
HWY_EXPORT(gated_rms_norm_rows);
HWY_EXPORT(layer_norm_rows);

void CpuOps::do_rms_norm(const RmsNorm& args) {
  parallel_ranges(args.x.size(0), rows_per_task(args.x.size(1)), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(rms_norm_rows)(args, begin, end);
  });
  quantize(args.out.plain, args.out.quantized);
}

void CpuOps::do_gated_rms_norm(const GatedRmsNorm& args) {
  const std::int64_t width = args.x.size(1) * args.x.size(2);
  parallel_ranges(args.x.size(0), rows_per_task(width), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(gated_rms_norm_rows)(args, begin, end);
  });
  quantize(args.out.plain, args.out.quantized);
}

void CpuOps::do_layer_norm(const LayerNorm& args) {
  parallel_ranges(args.x.size(0), rows_per_task(args.x.size(1)), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(layer_norm_rows)(args, begin, end);
  });
  quantize(args.out.plain, args.out.quantized);
}

}  // namespace treble::cpu
#endif
