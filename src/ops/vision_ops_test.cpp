#include <doctest/doctest.h>
#include <treble/error.h>

#include <array>
#include <cmath>

#include "ops/testing/op_test.h"

using namespace treble;
using namespace treble::testing;

TEST_CASE("scatter_rows: rows replace those that the index names, and no other") {
  for (const Backend& backend : backends()) {
    OpTest test("scatter_rows", backend, 61);
    const Operand x = test.normal(test.act(), {7, 37}), rows = test.normal(test.act(), {3, 37});
    const std::vector<std::int32_t> index = {5, 0, 2};
    test.ops().scatter_rows({.rows = rows, .index = test.host_integers({3}, index), .x = x});
    std::vector<double> expected = x.values;
    for (std::int64_t i = 0; i < 3; ++i)
      for (std::int64_t c = 0; c < 37; ++c)
        expected[static_cast<std::size_t>(index[static_cast<std::size_t>(i)] * 37 + c)] = rows[i * 37 + c];
    test.expect(x, expected, {0, 0});
  }
}

TEST_CASE("scatter_rows: a row outside the target is an error, not a write past its end") {
  for (const Backend& backend : backends()) {
    OpTest test("scatter_rows", backend, 62);
    const Operand x = test.normal(test.act(), {7, 5}), rows = test.normal(test.act(), {1, 5});
    for (const std::int32_t outside : {-1, 7}) {
      const std::vector<std::int32_t> index = {outside};
      CHECK_THROWS_AS(test.ops().scatter_rows({.rows = rows, .index = test.host_integers({1}, index), .x = x}), Error);
    }
  }
}

TEST_CASE("fill_zero: every element of the view becomes 0, and no other") {
  for (const Backend& backend : backends()) {
    OpTest test("fill_zero", backend, 63);
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      const Operand x = test.normal(dtype, {5, 3, 7});
      test.ops().fill_zero({.x = x.view.rows(1, 3)});
      std::vector<double> expected = x.values;
      for (std::size_t i = 21; i < 63; ++i) expected[i] = 0;
      test.expect(x, expected, {0, 0});
      CHECK_THROWS_AS(test.ops().fill_zero({.x = x.view.slice(1, 0, 2)}), Error);
    }
  }
}

TEST_CASE(
    "normalize_patches: values are (level - mean) / deviation, to the last bit; one frame's levels fill both frames") {
  constexpr std::array<float, 3> kMean = {127.5f, 100.25f, 3}, kDeviation = {127.5f, 50, 70.125f};
  for (const Backend& backend : backends()) {
    OpTest test("normalize_patches", backend, 67);
    for (const std::int64_t given_frames : {1, 2}) {
      for (const std::int64_t num_pixels : {1, 37, 256}) {
        constexpr std::int64_t kPatches = 3;
        std::vector<double> values(static_cast<std::size_t>(kPatches * 3 * given_frames * num_pixels));
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i * 97 % 256);
        const Operand levels = test.with_values(DType::kU8, {kPatches, 3, given_frames, num_pixels}, values);
        const TensorView out = test.output(test.act(), {kPatches, 3, 2, num_pixels});
        test.ops().normalize_patches({.levels = levels, .mean = kMean, .deviation = kDeviation, .out = out});
        std::vector<double> expected;
        for (std::int64_t row = 0; row < kPatches * 3; ++row) {
          const auto channel = static_cast<std::size_t>(row % 3);
          for (std::int64_t frame = 0; frame < 2; ++frame) {
            for (std::int64_t i = 0; i < num_pixels; ++i) {
              const auto level =
                  static_cast<float>(levels[(row * given_frames + frame % given_frames) * num_pixels + i]);
              const float value = (level - kMean[channel]) / kDeviation[channel];
              expected.push_back(rounded(test.act(), static_cast<double>(value)));
            }
          }
        }
        test.expect(out, expected, {0, 0});
      }
    }
  }
}

TEST_CASE("normalize_patches: three frames, or a deviation of 0, are an error") {
  for (const Backend& backend : backends()) {
    OpTest test("normalize_patches", backend, 68);
    const TensorView out = test.output(test.act(), {1, 3, 2, 4});
    const auto normalize = [&](std::int64_t frames, float deviation) {
      const std::vector<double> values(static_cast<std::size_t>(12 * frames), 9);
      test.ops().normalize_patches({.levels = test.with_values(DType::kU8, {1, 3, frames, 4}, values),
                                    .mean = {1, 1, 1},
                                    .deviation = {1, deviation, 1},
                                    .out = out});
    };
    CHECK_NOTHROW(normalize(2, 1));
    CHECK_THROWS_AS(normalize(3, 1), Error);
    CHECK_THROWS_AS(normalize(1, 0), Error);
  }
}

TEST_CASE("add_interpolated_rows: four weighted rows of the table are summed, rounded and added") {
  for (const Backend& backend : backends()) {
    OpTest test("add_interpolated_rows", backend, 63);
    for (const std::int64_t width : {1, 37, 144}) {
      const Operand x = test.normal(test.act(), {3, width}), table = test.normal(DType::kBF16, {9, width});
      const std::vector<std::int32_t> index = {0, 1, 3, 4, 8, 8, 8, 8, 7, 5, 2, 0};
      std::vector<float> weights;
      for (int i = 0; i < 12; ++i) weights.push_back(static_cast<float>(i * 5 % 12) / 13);
      test.ops().add_interpolated_rows({.x = x,
                                        .table = table,
                                        .index = test.host_integers({3, 4}, index),
                                        .weights = TensorView(weights.data(), DType::kF32, {3, 4})});
      std::vector<double> expected;
      for (std::int64_t r = 0; r < 3; ++r) {
        for (std::int64_t i = 0; i < width; ++i) {
          double sum = 0;
          for (std::int64_t tap = 0; tap < 4; ++tap)
            sum += static_cast<double>(weights[static_cast<std::size_t>(r * 4 + tap)]) *
                   table[index[static_cast<std::size_t>(r * 4 + tap)] * width + i];
          expected.push_back(rounded(test.act(), x[r * width + i] + rounded(test.act(), sum)));
        }
      }
      test.expect(x, expected, tolerance(test.act(), 4, 2, 2));
      if (test.act() == DType::kBF16 && width > 37) test.expect_rounded(x, expected);
    }
  }
}

TEST_CASE("add_interpolated_rows: a tap outside the table is an error, not a read past its end") {
  for (const Backend& backend : backends()) {
    OpTest test("add_interpolated_rows", backend, 64);
    const Operand x = test.normal(test.act(), {1, 8}), table = test.normal(DType::kBF16, {9, 8});
    std::vector<float> weights(4, 0.25f);
    for (const std::int32_t outside : {-1, 9}) {
      const std::vector<std::int32_t> index = {0, 0, outside, 0};
      CHECK_THROWS_AS(test.ops().add_interpolated_rows({.x = x,
                                                        .table = table,
                                                        .index = test.host_integers({1, 4}, index),
                                                        .weights = TensorView(weights.data(), DType::kF32, {1, 4})}),
                      Error);
    }
  }
}

TEST_CASE("axial_rotary_tables: the first half of the frequencies follows the row, the second the column") {
  constexpr float kTheta = 1e4f;
  for (const Backend& backend : backends()) {
    OpTest test("axial_rotary_tables", backend, 65);
    const std::vector<std::int32_t> positions = {0, 1, 63, 4095, 5, 0, 2, 1000};  // rows, then columns
    for (const std::int64_t per_axis : {1, 12, 18}) {
      const TensorView cos = test.output(DType::kF32, {4, 2 * per_axis}),
                       sin = test.output(DType::kF32, {4, 2 * per_axis});
      test.ops().axial_rotary_tables(
          {.positions = test.host_integers({2, 4}, positions), .theta = kTheta, .cos = cos, .sin = sin});
      std::vector<double> expected_cos, expected_sin;
      for (std::size_t r = 0; r < 4; ++r) {
        for (std::size_t axis = 0; axis < 2; ++axis) {
          for (std::int64_t j = 0; j < per_axis; ++j) {
            // Each step in fp32, as the reference computes it.
            const double power = std::pow(static_cast<double>(kTheta), static_cast<double>(j) / double(per_axis));
            const float angle = static_cast<float>(positions[axis * 4 + r]) * (1.0f / static_cast<float>(power));
            expected_cos.push_back(std::cos(static_cast<double>(angle)));
            expected_sin.push_back(std::sin(static_cast<double>(angle)));
          }
        }
      }
      // A unit in the last place of a frequency turns the largest angle, 4095, by 2.4e-4.
      const Tolerance close = {0, 5e-4};
      test.expect(cos, expected_cos, close);
      test.expect(sin, expected_sin, close);
    }
  }
}

TEST_CASE("rotate_heads: feature i turns with i + head_dim / 2, in place and rounded once; neighbours stay") {
  struct Case {
    std::int64_t num_rows, num_heads, head_dim;
  };
  for (const Backend& backend : backends()) {
    OpTest test("rotate_heads", backend, 66);
    for (const auto& [num_rows, num_heads, head_dim] :
         {Case{1, 1, 2}, Case{5, 3, 44}, Case{9, 2, 48}, Case{20, 4, 64}, Case{33, 2, 72}}) {
      // Query, key and value side by side, as their projection writes them.
      const Operand qkv = test.normal(test.act(), {num_rows, 3 * num_heads, head_dim});
      const auto part = [&](std::int64_t i) { return qkv.view.slice(1, i * num_heads, (i + 1) * num_heads); };
      const std::vector<double> value_before = test.read(part(2));
      const Operand cos = test.uniform(DType::kF32, {num_rows, head_dim / 2}, -1, 1);
      const Operand sin = test.uniform(DType::kF32, {num_rows, head_dim / 2}, -1, 1);
      std::vector<std::vector<double>> expected;
      for (const std::int64_t i : {0, 1}) {
        const std::vector<double> x = test.read(part(i));
        std::vector<double>& y = expected.emplace_back(x.size());
        const std::int64_t half = head_dim / 2;
        for (std::int64_t head = 0; head < num_rows * num_heads; ++head) {
          for (std::int64_t j = 0; j < half; ++j) {
            const auto first = static_cast<std::size_t>(head * head_dim + j), second = first + std::size_t(half);
            const double c = cos[head / num_heads * half + j], s = sin[head / num_heads * half + j];
            y[first] = rounded(test.act(), x[first] * c - x[second] * s);
            y[second] = rounded(test.act(), x[second] * c + x[first] * s);
          }
        }
      }
      test.ops().rotate_heads({.query = part(0), .key = part(1), .cos = cos, .sin = sin});
      for (const std::int64_t i : {0, 1}) {
        test.expect(part(i), expected[static_cast<std::size_t>(i)], tolerance(test.act(), 2, 3));
        if (test.act() == DType::kBF16 && num_rows > 8)
          test.expect_rounded(part(i), expected[static_cast<std::size_t>(i)]);
      }
      test.expect(part(2), value_before, {0, 0});
    }
  }
}
