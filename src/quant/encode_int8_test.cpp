#include "quant/encode_int8.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "quant/rotation.h"
#include "quant/testing/module.h"

namespace treble {
namespace {

using testing::contains;
using testing::normal_numbers;

TEST_CASE("encode_int8: a code is the nearest multiple of its row's scale to the rotated weight") {
  for (const std::int64_t group : {1, 16, 256}) {
    CAPTURE(group);
    std::vector<float> weight = normal_numbers(std::size_t{20} * 512);
    const EncodedLinear encoded = encode_int8(TensorView(weight.data(), DType::kF32, {20, 512}), group, "q");
    const LinearWeight& linear = encoded.linear;
    CHECK(linear.format == WeightFormat::kInt8);
    CHECK(linear.weight.describe() == "[20, 512] i8");
    CHECK(linear.int8.rotation_group == group);
    for (std::int64_t o = 0; o < 20; ++o) {
      float* row = weight.data() + o * 512;
      rotate(row, 512, group);
      const float largest =
          std::abs(*std::max_element(row, row + 512, [](float a, float b) { return std::abs(a) < std::abs(b); }));
      const float scale = linear.int8.row_scale.as<float>()[o];
      CHECK(scale == largest / 127);
      for (std::int64_t i = 0; i < 512; ++i)
        CHECK(linear.weight.as<std::int8_t>()[o * 512 + i] == std::nearbyint(row[i] / scale));
    }
  }
}

TEST_CASE("encode_int8: the published vector has the published codes") {
  // In groups of 256 the largest value, 10.5546875, stands at 61; the scale is a division here, not a product.
  std::vector<float> weight(256);
  for (int i = 0; i < 256; ++i) weight[static_cast<std::size_t>(i)] = static_cast<float>((37 * i % 101) - 50) / 8;
  const EncodedLinear encoded = encode_int8(TensorView(weight.data(), DType::kF32, {1, 256}), 256, "q");
  CHECK(encoded.linear.int8.row_scale.as<float>()[0] == 10.5546875f / 127);
  const std::int8_t* codes = encoded.linear.weight.as<std::int8_t>();
  CHECK(std::vector<int>(codes, codes + 16) ==
        std::vector<int>{-28, 47, 103, -32, 5, -34, -55, 1, -38, -2, 92, -4, -25, -64, -46, 47});
  CHECK(std::abs(codes[61]) == 127);
  int sum = 0;
  for (int i = 0; i < 256; ++i) sum += codes[i] * (i + 1);
  CHECK(sum == -6181);
}

TEST_CASE("encode_int8: bf16 and f16 weights, at any alignment, are read as the numbers they are") {
  const std::vector<float> weight = {1, -2, 0.5f, 4};
  const std::vector<std::uint16_t> bf16 = {0x3f80, 0xc000, 0x3f00, 0x4080}, f16 = {0x3c00, 0xc000, 0x3800, 0x4400};
  const auto codes_of = [](const void* data, DType dtype) {
    std::vector<char> bytes(1 + 4 * size_of(dtype));
    std::copy_n(static_cast<const char*>(data), 4 * size_of(dtype), bytes.begin() + 1);
    const EncodedLinear encoded = encode_int8(TensorView(bytes.data() + 1, dtype, {1, 4}), 1, "q");
    CHECK(encoded.linear.int8.row_scale.as<float>()[0] == 4.0f / 127);
    const std::int8_t* codes = encoded.linear.weight.as<std::int8_t>();
    return std::vector<int>(codes, codes + 4);
  };
  const std::vector<int> expected = {32, -64, 16, 127};
  CHECK(codes_of(weight.data(), DType::kF32) == expected);
  CHECK(codes_of(bf16.data(), DType::kBF16) == expected);
  CHECK(codes_of(f16.data(), DType::kF16) == expected);
}

TEST_CASE("encode_int8: a row of zeros has codes of 0 and a scale above 0") {
  std::vector<float> weight(64);
  const EncodedLinear encoded = encode_int8(TensorView(weight.data(), DType::kF32, {1, 64}), 64, "q");
  CHECK(encoded.linear.int8.row_scale.as<float>()[0] == 1e-30f);
  const std::int8_t* codes = encoded.linear.weight.as<std::int8_t>();
  CHECK(std::all_of(codes, codes + 64, [](std::int8_t code) { return code == 0; }));
}

TEST_CASE("encode_int8: weights that are not finite and groups that do not divide the inputs are refused") {
  std::vector<float> weight(2 * 96, 1.0f);
  const TensorView view(weight.data(), DType::kF32, {2, 96});
  for (const std::int64_t group : {0, -4, 2, 8, 64, 256})
    CHECK(contains(testing::error_of([&] { encode_int8(view, group, "quantize: \"m\""); }),
                   "quantize: \"m\" cannot be rotated in groups of " + std::to_string(group)));
  weight[100] = std::numeric_limits<float>::quiet_NaN();
  CHECK(contains(testing::error_of([&] { encode_int8(view, 16, "quantize: \"m\""); }), "nan at [1, 4]"));
  weight[100] = std::numeric_limits<float>::infinity();
  CHECK(contains(testing::error_of([&] { encode_int8(view, 1, "quantize: \"m\""); }), "inf at [1, 4]"));
  weight.assign(weight.size(), 3e38f);
  CHECK(contains(testing::error_of([&] { encode_int8(view, 16, "quantize: \"m\""); }), "too large"));
}

}  // namespace
}  // namespace treble
