#include "cpu/linear_tiles.h"

#include "cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/linear_tiles.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // keep in this order
#include <hwy/highway.h>

#include <algorithm>

#include "cpu/nf4-inl.h"
#include "cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treble::cpu::HWY_NAMESPACE {

// As many sums as leave registers for a column of weights and one vector of a token: 16 registers, or 32 with AVX-512.
constexpr bool kManyRegisters = kLanes >= 16;
constexpr std::int64_t kTileTokens = kManyRegisters ? 6 : 4;
constexpr std::int64_t kTileOutputs = kManyRegisters ? 4 : 3;
static_assert(kPackTokens % kTileTokens == 0 && kPassTokens % kPackTokens == 0 && kPassOutputs % kTileOutputs == 0);

// A pass of fewer tokens would not repay the widened copy.
constexpr std::int64_t kFewTokens = 32;

/// Features of a token as they are packed: whole vectors, zeros at the end.
constexpr std::int64_t padded(std::int64_t in_features) {
  return (in_features + kLanes - 1) / kLanes * kLanes;
}

std::int64_t packed_size(std::int64_t num_tokens, std::int64_t in_features) {
  return num_tokens * padded(in_features);
}

// Packed order: tiles of tokens; in a tile, vector by vector of features, the tokens side by side. The last tile may
// hold fewer tokens.
template <typename T>
void pack_tokens_of(const TensorView& input, std::int64_t begin, std::int64_t end, float* packed) {
  const std::int64_t in_features = input.size(1);
  float* to = packed + begin * padded(in_features);
  for (std::int64_t first = begin; first < end; first += kTileTokens) {
    const std::int64_t num_tokens = std::min(kTileTokens, end - first);
    for (std::int64_t t = 0; t < num_tokens; ++t) {
      const T* from = input.as<T>() + (first + t) * input.stride(0);
      for (std::int64_t k = 0; k < in_features; k += kLanes)
        store(load(from + k, in_features - k), to + k * num_tokens + t * kLanes);
    }
    to += num_tokens * padded(in_features);
  }
}

void pack_tokens(const TensorView& input, std::int64_t begin, std::int64_t end, float* packed) {
  if (input.dtype() == DType::kBF16) {
    pack_tokens_of<bfloat16>(input, begin, end, packed);
  } else {
    pack_tokens_of<float>(input, begin, end, packed);
  }
}

/// Weight rows of a tile as they lie, at the first feature of a sweep.
struct StoredRows {
  const bfloat16* rows[kTileOutputs];

  /// Past the last row it repeats that one: nobody reads those sums.
  StoredRows(const TensorView& weight, std::int64_t output, std::int64_t feature) {
    for (std::int64_t i = 0; i < kTileOutputs; ++i) {
      const std::int64_t row = std::min(output + i, weight.size(0) - 1);
      rows[i] = weight.as<bfloat16>() + row * weight.stride(0) + feature;
    }
  }
  HWY_INLINE VecF32 operator()(std::int64_t output, std::int64_t k, std::int64_t count) const {
    return load(rows[output] + k, count);
  }
};

/// The same in fp32, vector by vector of features, the rows side by side; zeros after the last feature.
struct WidenedRows {
  const float* data;

  HWY_INLINE VecF32 operator()(std::int64_t output, std::int64_t k, std::int64_t) const {
    return load(data + k * kTileOutputs + output * kLanes);
  }
};

/// Widens features [feature, feature + depth) of all rows, tile by tile.
void widen_rows(const TensorView& weight, std::int64_t feature, std::int64_t depth, float* widened) {
  for (std::int64_t o = 0; o < weight.size(0); o += kTileOutputs, widened += kTileOutputs * padded(depth)) {
    const StoredRows rows(weight, o, feature);
    for (std::int64_t i = 0; i < kTileOutputs; ++i) {
      for (std::int64_t k = 0; k < depth; k += kLanes)
        store(rows(i, k, depth - k), widened + k * kTileOutputs + i * kLanes);
    }
  }
}

/// The same for codes.
void decode_rows(const Nf4Decoder& decoder, std::int64_t feature, std::int64_t depth, float* widened) {
  const Nf4& nf4 = decoder.nf4();
  float values[kSweepFeatures];
  for (std::int64_t o = 0; o < nf4.out_features; o += kTileOutputs, widened += kTileOutputs * padded(depth)) {
    for (std::int64_t i = 0; i < kTileOutputs; ++i) {
      const std::int64_t row = std::min(o + i, nf4.out_features - 1);
      decoder.decode(nf4.first_element + row * nf4.in_features + feature, depth, values);
      for (std::int64_t k = 0; k < depth; k += kLanes)
        store(load(values + k, depth - k), widened + k * kTileOutputs + i * kLanes);
    }
  }
}

/// One tile over `depth` features: product[t, o] (+)= tokens[t] . rows[o].
template <std::int64_t kTokens, typename Rows>
HWY_INLINE void multiply_tile(const float* tokens, const Rows& rows, std::int64_t depth, bool add, float* product) {
  VecF32 sums[kTokens][kTileOutputs];
#pragma GCC unroll 8
  for (std::int64_t t = 0; t < kTokens; ++t) {
#pragma GCC unroll 8
    for (std::int64_t o = 0; o < kTileOutputs; ++o) sums[t][o] = zero();
  }
  const auto step = [&](std::int64_t k, std::int64_t count) HWY_ATTR {
    VecF32 weights[kTileOutputs];
#pragma GCC unroll 8
    for (std::int64_t o = 0; o < kTileOutputs; ++o) weights[o] = rows(o, k, count);
#pragma GCC unroll 8
    for (std::int64_t t = 0; t < kTokens; ++t) {
      const VecF32 token = load(tokens + k * kTokens + t * kLanes);
#pragma GCC unroll 8
      for (std::int64_t o = 0; o < kTileOutputs; ++o) sums[t][o] = hn::MulAdd(token, weights[o], sums[t][o]);
    }
  };
  std::int64_t k = 0;
  for (; k + kLanes <= depth; k += kLanes) step(k, kLanes);
  if (k < depth) step(k, depth - k);
#pragma GCC unroll 8
  for (std::int64_t t = 0; t < kTokens; ++t) {
#pragma GCC unroll 8
    for (std::int64_t o = 0; o < kTileOutputs; ++o) {
      float& to = product[t * kPassOutputs + o];
      to = sum(sums[t][o]) + (add ? to : 0.0f);
    }
  }
}

/// The same for a number of tokens known only now.
template <std::int64_t kTokens = kTileTokens, typename Rows>
HWY_INLINE void multiply_tile_of(std::int64_t num_tokens, const float* tokens, const Rows& rows, std::int64_t depth,
                                 bool add, float* product) {
  if constexpr (kTokens > 1) {
    if (num_tokens < kTokens) return multiply_tile_of<kTokens - 1>(num_tokens, tokens, rows, depth, add, product);
  }
  multiply_tile<kTokens>(tokens, rows, depth, add, product);
}

/// All tiles of a pass over features [feature, feature + depth). rows_at(o) is the rows of the tile of output o.
template <typename RowsAt>
HWY_INLINE void sweep(const float* packed, std::int64_t in_features, std::int64_t feature, std::int64_t depth,
                      std::int64_t num_outputs, const RowsAt& rows_at, const TensorView& product) {
  const std::int64_t num_tokens = product.size(0);
  const std::int64_t num_tiles = (num_outputs + kTileOutputs - 1) / kTileOutputs;
  for (std::int64_t t = 0; t < num_tokens; t += kTileTokens) {
    const std::int64_t tile_tokens = std::min(kTileTokens, num_tokens - t);
    const float* tokens = packed + t * padded(in_features) + feature * tile_tokens;
    // The next tokens come while these are multiplied, a share with each tile; the processor does not foresee them. It
    // is a quarter of the speed of long inputs. A hint may point past the end.
    const float* next = tokens + kTileTokens * padded(in_features);
    const std::int64_t share = (depth * kTileTokens + num_tiles - 1) / num_tiles;
    for (std::int64_t o = 0; o < num_outputs; o += kTileOutputs, next += share) {
      constexpr std::int64_t kLineFloats = 16;
      for (std::int64_t i = 0; i < share; i += kLineFloats) hwy::Prefetch(next + i);
      multiply_tile_of(tile_tokens, tokens, rows_at(o), depth, feature > 0, product.as<float>() + t * kPassOutputs + o);
    }
  }
}

void add_bias(const TensorView& bias, const TensorView& product) {
  const std::int64_t num_outputs = bias.size(0);
  for (std::int64_t t = 0; t < product.size(0); ++t) {
    float* row = product.as<float>() + t * kPassOutputs;
    for (std::int64_t o = 0; o < num_outputs; o += kLanes) {
      const VecF32 x = load(row + o, num_outputs - o);
      store(hn::Add(x, load(bias.as<bfloat16>() + o, num_outputs - o)), row + o, num_outputs - o);
    }
  }
}

/// widen(feature, depth) fills `widened`.
template <typename Widen>
void multiply_widened(const float* packed, std::int64_t num_outputs, std::int64_t in_features, const Widen& widen,
                      const float* widened, const TensorView& product) {
  // A tile of tokens stays in the first-level cache for the whole sweep; adding up lanes at its end costs 3 %.
  for (std::int64_t feature = 0; feature == 0 || feature < in_features; feature += kSweepFeatures) {
    const std::int64_t depth = std::min(kSweepFeatures, in_features - feature);
    widen(feature, depth);
    const auto rows_at = [&](std::int64_t o) { return WidenedRows{widened + o * padded(depth)}; };
    sweep(packed, in_features, feature, depth, num_outputs, rows_at, product);
  }
}

void multiply_pass(const float* packed, const LinearWeight& weight, float* widened, const TensorView& product) {
  const std::int64_t num_outputs = weight.out_features(), in_features = weight.in_features();
  const TensorView& bias = weight.bias;
  if (weight.format == WeightFormat::kNf4) {
    const Nf4Decoder decoder(weight);
    const auto widen = [&](std::int64_t feature, std::int64_t depth) { decode_rows(decoder, feature, depth, widened); };
    multiply_widened(packed, num_outputs, in_features, widen, widened, product);
  } else if (product.size(0) <= kFewTokens) {
    const auto rows_at = [&](std::int64_t o) { return StoredRows(weight.weight, o, 0); };
    sweep(packed, in_features, 0, in_features, num_outputs, rows_at, product);
  } else {
    const auto widen = [&](std::int64_t feature, std::int64_t depth) {
      widen_rows(weight.weight, feature, depth, widened);
    };
    multiply_widened(packed, num_outputs, in_features, widen, widened, product);
  }
  if (bias) add_bias(bias, product);
}

template <typename Out>
void store_product_as(const TensorView& product, const TensorView& out) {
  const std::int64_t num_outputs = out.size(1);
  for (std::int64_t t = 0; t < out.size(0); ++t) {
    const float* from = product.as<float>() + t * product.stride(0);
    Out* to = out.as<Out>() + t * out.stride(0);
    for (std::int64_t o = 0; o < num_outputs; o += kLanes)
      store(load(from + o, num_outputs - o), to + o, num_outputs - o);
  }
}

void store_product(const TensorView& product, const TensorView& out) {
  if (out.dtype() == DType::kBF16) {
    store_product_as<bfloat16>(product, out);
  } else {
    store_product_as<float>(product, out);
  }
}

template <typename In, typename Out>
void store_swiglu_as(const TensorView& gate, const TensorView& up, const TensorView& out) {
  const std::int64_t num_outputs = out.size(1);
  for (std::int64_t t = 0; t < out.size(0); ++t) {
    const In* gates = gate.as<In>() + t * gate.stride(0);
    const In* ups = up.as<In>() + t * up.stride(0);
    Out* to = out.as<Out>() + t * out.stride(0);
    for (std::int64_t o = 0; o < num_outputs; o += kLanes) {
      const VecF32 activated = round_to<Out>(silu(round_to<Out>(load(gates + o, num_outputs - o))));
      store(hn::Mul(activated, round_to<Out>(load(ups + o, num_outputs - o))), to + o, num_outputs - o);
    }
  }
}

void store_swiglu(const TensorView& gate, const TensorView& up, const TensorView& out) {
  if (out.dtype() == DType::kF32) {
    store_swiglu_as<float, float>(gate, up, out);
  } else if (gate.dtype() == DType::kF32) {
    store_swiglu_as<float, bfloat16>(gate, up, out);
  } else {
    store_swiglu_as<bfloat16, bfloat16>(gate, up, out);
  }
}

}  // namespace treble::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treble::cpu {

HWY_EXPORT(packed_size);
HWY_EXPORT(pack_tokens);
HWY_EXPORT(multiply_pass);
HWY_EXPORT(store_product);
HWY_EXPORT(store_swiglu);

std::int64_t packed_size(std::int64_t num_tokens, std::int64_t in_features) {
  return HWY_DYNAMIC_DISPATCH(packed_size)(num_tokens, in_features);
}

void pack_tokens(const TensorView& input, std::int64_t begin, std::int64_t end, float* packed) {
  HWY_DYNAMIC_DISPATCH(pack_tokens)(input, begin, end, packed);
}

void multiply_pass(const float* packed, const LinearWeight& weight, float* widened, const TensorView& product) {
  HWY_DYNAMIC_DISPATCH(multiply_pass)(packed, weight, widened, product);
}

void store_product(const TensorView& product, const TensorView& out) {
  HWY_DYNAMIC_DISPATCH(store_product)(product, out);
}

void store_swiglu(const TensorView& gate, const TensorView& up, const TensorView& out) {
  HWY_DYNAMIC_DISPATCH(store_swiglu)(gate, up, out);
}

}  // namespace treble::cpu
#endif
