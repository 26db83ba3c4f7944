#include "cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/vision_ops.cpp"
#include <hwy/foreach_target.h>  // keep in this order
#include <hwy/highway.h>

#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/parallel.h"
#include "cpu/cpu_ops.h"
#include "cpu/rotary_frequencies.h"
#include "cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treble::cpu::HWY_NAMESPACE {

template <typename T>
HWY_INLINE void normalize_channel(const std::uint8_t* levels, std::int64_t count, float mean, float deviation, T* out) {
  using U8 = hn::Rebind<std::uint8_t, F32>;
  using I32 = hn::RebindToSigned<U32>;
  for (std::int64_t i = 0; i < count; i += kLanes) {
    std::uint8_t padded[kLanes] = {};
    const std::uint8_t* from = levels + i;
    if (count - i < kLanes) {
      std::memcpy(padded, from, static_cast<std::size_t>(count - i));
      from = padded;
    }
    const VecF32 level = hn::ConvertTo(F32(), hn::PromoteTo(I32(), hn::LoadU(U8(), from)));
    store(hn::Div(hn::Sub(level, fill(mean)), fill(deviation)), out + i, count - i);
  }
}

template <typename T>
HWY_INLINE void normalize_patch_of(const NormalizePatches& args, std::int64_t r) {
  const TensorView& levels = args.levels;
  const std::int64_t given_frames = levels.size(2), num_pixels = levels.size(3);
  for (std::int64_t channel = 0; channel < 3; ++channel) {
    const auto c = static_cast<std::size_t>(channel);
    const std::uint8_t* from = levels.as<std::uint8_t>() + r * levels.stride(0) + channel * levels.stride(1);
    T* to = args.out.as<T>() + r * args.out.stride(0) + channel * args.out.stride(1);
    for (std::int64_t frame = 0; frame < given_frames; ++frame) {
      normalize_channel(from + frame * levels.stride(2), num_pixels, args.mean[c], args.deviation[c],
                        to + frame * args.out.stride(2));
    }
    if (given_frames == 1) std::memcpy(to + args.out.stride(2), to, static_cast<std::size_t>(num_pixels) * sizeof(T));
  }
}

void normalize_patch(const NormalizePatches& args, std::int64_t r) {
  if (args.out.dtype() == DType::kBF16) {
    normalize_patch_of<bfloat16>(args, r);
  } else {
    normalize_patch_of<float>(args, r);
  }
}

template <typename T>
HWY_INLINE void add_taps(const TensorView& table, const std::int32_t* index, const float* weights, T* x) {
  const std::int64_t count = table.size(1);
  const auto row = [&](int tap) { return table.as<bfloat16>() + index[tap] * table.stride(0); };
  const std::array rows = {row(0), row(1), row(2), row(3)};
  for (std::int64_t i = 0; i < count; i += kLanes) {
    VecF32 sum = zero();
    for (std::size_t tap = 0; tap < rows.size(); ++tap)
      sum = hn::Add(sum, hn::Mul(fill(weights[tap]), load(rows[tap] + i, count - i)));
    store(hn::Add(load(x + i, count - i), round_to<T>(sum)), x + i, count - i);
  }
}

void add_interpolated_row(const AddInterpolatedRows& args, std::int64_t r) {
  const std::int32_t* index = args.index.as<std::int32_t>() + r * args.index.stride(0);
  const float* weights = args.weights.as<float>() + r * args.weights.stride(0);
  const std::int64_t offset = r * args.x.stride(0);
  if (args.x.dtype() == DType::kBF16) {
    add_taps(args.table, index, weights, args.x.as<bfloat16>() + offset);
  } else {
    add_taps(args.table, index, weights, args.x.as<float>() + offset);
  }
}

template <typename T>
HWY_INLINE void rotate_heads_of(const TensorView& x, const float* cos, const float* sin, std::int64_t r) {
  const std::int64_t half = x.size(2) / 2;
  for (std::int64_t n = 0; n < x.size(1); ++n) {
    T* head = x.as<T>() + r * x.stride(0) + n * x.stride(1);
    for (std::int64_t i = 0; i < half; i += kLanes) {
      const VecF32 a = load(head + i, half - i), b = load(head + half + i, half - i);
      const VecF32 c = load(cos + i, half - i), s = load(sin + i, half - i);
      store(hn::Sub(hn::Mul(a, c), hn::Mul(b, s)), head + i, half - i);
      store(hn::Add(hn::Mul(b, c), hn::Mul(a, s)), head + half + i, half - i);
    }
  }
}

void rotate_heads_row(const RotateHeads& args, std::int64_t r) {
  const float* cos = args.cos.as<float>() + r * args.cos.stride(0);
  const float* sin = args.sin.as<float>() + r * args.sin.stride(0);
  for (const TensorView* x : {&args.query, &args.key}) {
    if (x->dtype() == DType::kBF16) {
      rotate_heads_of<bfloat16>(*x, cos, sin, r);
    } else {
      rotate_heads_of<float>(*x, cos, sin, r);
    }
  }
}

}  // namespace treble::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treble::cpu {
namespace {

constexpr std::int64_t kRowsPerTask = 16;

}  // namespace

HWY_EXPORT(normalize_patch);
HWY_EXPORT(add_interpolated_row);
HWY_EXPORT(rotate_heads_row);

void CpuOps::do_scatter_rows(const ScatterRows& args) {
  const std::size_t row_bytes = static_cast<std::size_t>(args.x.size(1)) * size_of(args.x.dtype());
  const auto row = [](const TensorView& view, std::int64_t i) { return view.rows(i, i + 1).data(); };
  const std::int32_t* index = args.index.as<std::int32_t>();
  for (std::int64_t i = 0; i < args.rows.size(0); ++i) std::memcpy(row(args.x, index[i]), row(args.rows, i), row_bytes);
}

void CpuOps::do_normalize_patches(const NormalizePatches& args) {
  parallel_ranges(args.out.size(0), kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) HWY_DYNAMIC_DISPATCH(normalize_patch)(args, r);
  });
}

void CpuOps::do_add_interpolated_rows(const AddInterpolatedRows& args) {
  parallel_ranges(args.x.size(0), kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) HWY_DYNAMIC_DISPATCH(add_interpolated_row)(args, r);
  });
}

void CpuOps::do_axial_rotary_tables(const AxialRotaryTables& args) {
  const std::int64_t per_axis = args.cos.size(1) / 2;
  const std::vector<float> frequencies = rotary_frequencies(args.theta, per_axis);
  const std::int32_t* positions = args.positions.as<std::int32_t>();
  parallel_ranges(args.cos.size(0), kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      float* cos = args.cos.as<float>() + r * args.cos.stride(0);
      float* sin = args.sin.as<float>() + r * args.sin.stride(0);
      for (std::int64_t axis = 0; axis < 2; ++axis) {
        const auto position = static_cast<float>(positions[axis * args.positions.stride(0) + r]);
        for (std::int64_t j = 0; j < per_axis; ++j) {
          const float angle = position * frequencies[static_cast<std::size_t>(j)];
          cos[axis * per_axis + j] = std::cos(angle);
          sin[axis * per_axis + j] = std::sin(angle);
        }
      }
    }
  });
}

void CpuOps::do_rotate_heads(const RotateHeads& args) {
  parallel_ranges(args.query.size(0), kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) HWY_DYNAMIC_DISPATCH(rotate_heads_row)(args, r);
  });
}

}  // namespace treble::cpu
#endif
