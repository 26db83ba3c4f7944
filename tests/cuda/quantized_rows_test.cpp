// Codes and scales that producers write on a GPU, against the format's arithmetic done here: equal to the bit.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "cuda/make_cuda_ops.h"
#include "quant/rotation.h"
#include "tensor/bfloat16.h"

namespace treble::cuda {
namespace {

float rounded(float x) {
  return to_float(to_bfloat16(x));
}

struct QuantizedRow {
  std::vector<int> codes;
  float scale;
};

/// docs/weights.md, "INT8 ConvRot". @param factor  empty, or of the row's size
QuantizedRow quantize(std::vector<float> row, const std::vector<float>& factor, std::int64_t group,
                      Int8Activations mode) {
  const bool is_precise = mode == Int8Activations::kPrecise;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (!is_precise) row[i] = rounded(row[i]);
    if (!factor.empty()) row[i] *= factor[i];
    if (!is_precise) row[i] = rounded(row[i]);
  }
  rotate(row.data(), std::ssize(row), group);
  if (mode == Int8Activations::kComfyFallback) std::ranges::transform(row, row.begin(), rounded);
  QuantizedRow out{std::vector<int>(row.size()), std::numeric_limits<float>::quiet_NaN()};
  if (!std::ranges::all_of(row, [](float x) { return std::isfinite(x); })) return out;
  float largest = 0;
  for (const float x : row) largest = std::max(largest, std::abs(x));
  out.scale = std::max(largest * (1.0f / 127.0f), 1e-30f);
  for (std::size_t i = 0; i < row.size(); ++i) {
    float quotient = row[i] / out.scale;
    if (!is_precise) quotient = std::clamp(rounded(rounded(row[i]) / rounded(out.scale)), -128.0f, 127.0f);
    out.codes[i] = static_cast<int>(std::nearbyint(quotient));
  }
  return out;
}

/// Rows of several magnitudes: among them one of zeros, one that is not finite, one of equal values.
std::vector<float> make_rows(std::int64_t num_rows, std::int64_t width, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(num_rows * width));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t row = static_cast<std::int64_t>(i) / width;
    const float magnitude = std::ldexp(1.0f, static_cast<int>(row * 7 % 40) - 20);
    values[i] = rounded(row == 1 ? 0.0f : row == 2 ? 3.0f : magnitude * normal(random));
  }
  if (num_rows > 3) values[static_cast<std::size_t>(3 * width + width / 2)] = std::numeric_limits<float>::infinity();
  return values;
}

class RowTest {
 public:
  RowTest(DType activations, Int8Activations mode)
      : mode_(mode),
        ops_(make_cuda_ops({.activation_dtype = activations, .int8_activations = mode})),
        workspace_(ops_->memory()) {}

  Ops& ops() { return *ops_; }
  TensorView upload(const TensorView& host) { return ops_->upload(workspace_, host); }
  TensorView activations(const std::vector<float>& values, std::initializer_list<std::int64_t> shape) {
    if (ops_->activation_dtype() == DType::kF32)
      return upload(TensorView(const_cast<float*>(values.data()), DType::kF32, shape));
    return narrow(values, shape);
  }
  TensorView narrow(const std::vector<float>& values, std::initializer_list<std::int64_t> shape) {
    std::vector<bfloat16> rows(values.size());
    std::ranges::transform(values, rows.begin(), [](float x) { return to_bfloat16(x); });
    return upload(TensorView(rows.data(), DType::kBF16, shape));
  }

  /// Calls produce(LinearInput) for a Linear that reads codes, and one that reads the plain form beside it; then holds
  /// the codes to what the plain form gives.
  template <typename Produce>
  void check(std::int64_t num_rows, std::int64_t width, std::int64_t group, const std::vector<float>& factor,
             const Produce& produce) {
    LinearWeight weight{.format = WeightFormat::kInt8}, dense;
    weight.weight = TensorView(&weight, DType::kI8, {1, width});
    dense.weight = TensorView(&weight, DType::kBF16, {1, width});
    weight.int8.rotation_group = group;
    if (!factor.empty())
      weight.int8.input_factor = upload(TensorView(const_cast<float*>(factor.data()), DType::kF32, {width}));
    const LinearInput both = ops_->linear_input(workspace_, num_rows, {&weight, &dense}),
                      alone = ops_->linear_input(workspace_, num_rows, {&weight});
    CHECK(!alone.plain);
    produce(both);
    produce(alone);
    const std::vector<float> plain = read_floats(both.plain);
    int num_wrong = 0;
    for (const LinearInput& input : {both, alone}) {
      std::vector<std::int8_t> codes(plain.size());
      ops_->download(input.quantized.codes, codes.data());
      const std::vector<float> scale = read_floats(input.quantized.scale);
      for (std::int64_t t = 0; t < num_rows; ++t) {
        const auto begin = plain.begin() + t * width;
        const QuantizedRow expected = quantize(std::vector<float>(begin, begin + width), factor, group, mode_);
        const float got = scale[static_cast<std::size_t>(t)];
        CHECK((got == expected.scale || (std::isnan(got) && std::isnan(expected.scale))));
        for (std::int64_t i = 0; i < width; ++i)
          num_wrong += codes[static_cast<std::size_t>(t * width + i)] != expected.codes[static_cast<std::size_t>(i)];
      }
    }
    CHECK(num_wrong == 0);
  }

 private:
  std::vector<float> read_floats(const TensorView& view) {
    std::vector<float> values(static_cast<std::size_t>(view.num_elements()));
    if (view.dtype() == DType::kF32) {
      ops_->download(view, values.data());
    } else {
      std::vector<bfloat16> rows(values.size());
      ops_->download(view, rows.data());
      std::ranges::transform(rows, values.begin(), [](bfloat16 x) { return to_float(x); });
    }
    return values;
  }

  Int8Activations mode_;
  std::unique_ptr<Ops> ops_;
  Workspace workspace_;
};

/// Calls body(RowTest) for every mode and activation dtype.
template <typename Body>
void for_every_mode(const Body& body) {
  if (num_devices() == 0) return;
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    for (const auto mode : {Int8Activations::kPrecise, Int8Activations::kComfyFused, Int8Activations::kComfyFallback}) {
      CAPTURE(to_string(dtype));
      CAPTURE(static_cast<int>(mode));
      RowTest test(dtype, mode);
      body(test);
    }
  }
}

// Widths of one and two groups a half warp, an odd number of groups, and groups that are quantised in parts.
struct Size {
  std::int64_t width, group;
};
constexpr Size kSizes[] = {{256, 256}, {768, 256},   {10752, 256}, {33, 1},
                           {36, 4},    {5120, 1024}, {8192, 4096}, {192, 64}};

TEST_CASE("quantised rows: producers that do not quantise leave it to a kernel, for all groups and input factors") {
  for_every_mode([](RowTest& test) {
    for (const auto& [width, group] : kSizes) {
      CAPTURE(width);
      CAPTURE(group);
      constexpr std::int64_t kRows = 5;
      const TensorView x = test.activations(make_rows(kRows, width, 1), {kRows, width});
      const TensorView gain = test.narrow(make_rows(1, width, 3), {width});
      std::vector<float> factor;
      for (std::int64_t i = 0; i < width; ++i) factor.push_back(0.5f + static_cast<float>(i % 13) / 7);
      for (const bool has_factor : {false, true}) {
        test.check(kRows, width, group, has_factor ? factor : std::vector<float>(), [&](const LinearInput& out) {
          test.ops().layer_norm({.x = x, .delta = {}, .weight = gain, .bias = gain, .eps = 1e-6f, .out = out});
        });
      }
    }
    constexpr std::int64_t kRows = 5, kWidth = 768;
    const TensorView heads = test.activations(make_rows(kRows, kWidth, 2), {kRows, 6, kWidth / 6});
    std::vector<std::int32_t> borders = {0, 1, 2, 3, 4, 5};  // a key each, so that out is value
    const TensorView cu_seqlens(borders.data(), DType::kI32, {kRows + 1});
    test.check(kRows, kWidth, 256, {}, [&](const LinearInput& out) {
      test.ops().attention({.query = heads,
                            .key = heads,
                            .value = heads,
                            .gate = {},
                            .cu_seqlens_q = cu_seqlens,
                            .cu_seqlens_k = cu_seqlens,
                            .causal = true,
                            .scale = 1,
                            .out = out});
    });
  });
}

TEST_CASE("quantised rows: a norm writes the codes of its plain rows, of every group") {
  for_every_mode([](RowTest& test) {
    for (const auto& [width, group] : kSizes) {
      CAPTURE(width);
      CAPTURE(group);
      constexpr std::int64_t kRows = 5;
      const TensorView x = test.activations(make_rows(kRows, width, 2), {kRows, width});
      const TensorView gain = test.narrow(make_rows(1, width, 3), {width});
      test.check(kRows, width, group, {}, [&](const LinearInput& out) {
        test.ops().rms_norm({.x = x, .weight = gain, .eps = 1e-6f, .out = out});
      });
    }
  });
}

TEST_CASE("quantised rows: a gated norm writes the codes of its plain rows, of heads that fit a group and others") {
  for_every_mode([](RowTest& test) {
    for (const std::int64_t head_dim : {128, 64}) {
      for (const std::int64_t num_heads : {4, 6}) {
        CAPTURE(head_dim);
        constexpr std::int64_t kRows = 4;
        const std::int64_t width = num_heads * head_dim, group = width % 256 == 0 ? 256 : 64;
        const TensorView x = test.activations(make_rows(kRows, width, 4), {kRows, num_heads, head_dim});
        const TensorView gate = test.activations(make_rows(2, 2 * width, 5), {kRows, num_heads, head_dim});
        const TensorView gain = test.narrow(make_rows(1, head_dim, 6), {head_dim});
        test.check(kRows, width, group, {}, [&](const LinearInput& out) {
          test.ops().gated_rms_norm({.x = x, .gate = gate, .weight = gain, .eps = 1e-6f, .out = out});
        });
      }
    }
  });
}

}  // namespace
}  // namespace treble::cuda
