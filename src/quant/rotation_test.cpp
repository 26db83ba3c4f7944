#include "quant/rotation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "quant/rotation_check.h"

namespace treble {
namespace {

/// Entry of the matrix by its definition: -1 for every base-4 digit where those of row and column add up to 3.
double entry(std::uint64_t row, std::uint64_t column, std::int64_t group) {
  int sign = 1;
  for (std::int64_t size = group; size > 1; size /= 4, row /= 4, column /= 4)
    if (row % 4 + column % 4 == 3) sign = -sign;
  return sign / std::sqrt(static_cast<double>(group));
}

TEST_CASE("rotation: a group of 16 rotates the squares as published") {
  std::vector<float> x;
  for (int i = 0; i < 16; ++i) x.push_back(static_cast<float>(i * i));
  rotate(x.data(), 16, 16);
  CHECK(x == std::vector<float>{-34, -29, -26, -25, 46, 59, 70, 79, 94, 115, 134, 151, 110, 139, 166, 191});
}

TEST_CASE("rotation: every group is the product with its matrix, run by run") {
  std::mt19937 random(3);
  std::uniform_int_distribution<int> any(-8, 8);
  for (const std::int64_t group : {1, 4, 16, 64, 256, 1024, 4096}) {
    CAPTURE(group);
    // Small integers: all sums are exact.
    std::vector<float> x(static_cast<std::size_t>(2 * group)), y;
    for (float& value : x) value = static_cast<float>(any(random));
    y = x;
    rotate(y.data(), 2 * group, group);
    for (const std::int64_t i : {std::int64_t{0}, group / 3, group - 1, group, 2 * group - 1}) {
      double expected = 0;
      for (std::int64_t j = 0; j < group; ++j)
        expected += entry(static_cast<std::uint64_t>(i % group), static_cast<std::uint64_t>(j), group) *
                    static_cast<double>(x[static_cast<std::size_t>(i / group * group + j)]);
      CHECK(static_cast<double>(y[static_cast<std::size_t>(i)]) == doctest::Approx(expected).epsilon(1e-12));
    }
    rotate(y.data(), 2 * group, group);
    CHECK(x == y);
  }
}

TEST_CASE("rotation: a constant stays as it is, one feature is spread evenly over its group") {
  std::vector<float> constant(512, 3.0f), unit(512);
  rotate(constant.data(), 512, 256);
  CHECK(constant == std::vector<float>(512, 3.0f));
  unit[300] = 1;
  rotate(unit.data(), 512, 256);
  for (std::size_t i = 0; i < 512; ++i) CHECK(std::abs(unit[i]) == (i < 256 ? 0.0f : 1.0f / 16));
}

TEST_CASE("rotation: groups are powers of four up to 4096 that divide the features") {
  for (const std::int64_t group : {4, 16, 64, 256, 1024, 4096}) CHECK(is_rotation_group(group, 8192));
  for (const std::int64_t group : {-4, 0, 1, 2, 8, 32, 128, 512, 2048, 16384}) CHECK(!is_rotation_group(group, 16384));
  CHECK(!is_rotation_group(256, 4304));
  CHECK(is_rotation_group(16, 4304));
}

/// Codes of a weight with a few large columns, as trained ones have, rotated in groups of `group`.
std::vector<std::int8_t> trained_codes(std::int64_t out_features, std::int64_t in_features, std::int64_t group) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<std::int8_t> codes;
  std::vector<float> row(static_cast<std::size_t>(in_features));
  for (std::int64_t o = 0; o < out_features; ++o) {
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = normal(random) * (i % 37 == 0 ? 4.0f : 1.0f);
    rotate(row.data(), in_features, group);
    float largest = 0;
    for (const float x : row) largest = std::max(largest, std::abs(x));
    for (const float x : row) codes.push_back(static_cast<std::int8_t>(std::nearbyint(x / largest * 127)));
  }
  return codes;
}

TEST_CASE("rotation check: recognises how a trained weight was rotated, whatever is claimed") {
  for (const std::int64_t actual : {1, 64, 256, 1024}) {
    std::vector<std::int8_t> codes = trained_codes(32, 1024, actual);
    LinearWeight linear;
    linear.format = WeightFormat::kInt8;
    linear.weight = TensorView(codes.data(), DType::kI8, {32, 1024});
    for (const std::int64_t claimed : {1, 64, 256, 1024}) {
      CAPTURE(actual);
      CAPTURE(claimed);
      linear.int8.rotation_group = claimed;
      CHECK(likely_rotation_group(linear) == actual);
    }
  }
}

TEST_CASE("rotation check: a weight that looks the same in every rotation is what it claims to be") {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 40);
  std::vector<std::int8_t> codes(16 * 1024);
  for (std::int8_t& code : codes)
    code = static_cast<std::int8_t>(std::clamp(std::nearbyint(normal(random)), -127.0f, 127.0f));
  LinearWeight linear;
  linear.format = WeightFormat::kInt8;
  linear.weight = TensorView(codes.data(), DType::kI8, {16, 1024});
  for (const std::int64_t claimed : {1, 64, 256, 1024}) {
    linear.int8.rotation_group = claimed;
    CHECK(likely_rotation_group(linear) == claimed);
  }
}

TEST_CASE("rotation check: a weight of lighter tails than rotated ones have is what it claims to be") {
  std::mt19937 random(5);
  std::uniform_int_distribution<int> uniform(-127, 127);
  std::vector<std::int8_t> codes(32 * 1024);
  for (std::int8_t& code : codes) code = static_cast<std::int8_t>(uniform(random));
  LinearWeight linear;
  linear.format = WeightFormat::kInt8;
  linear.weight = TensorView(codes.data(), DType::kI8, {32, 1024});
  linear.int8.rotation_group = 1;
  CHECK(likely_rotation_group(linear) == 1);
}

}  // namespace
}  // namespace treble
