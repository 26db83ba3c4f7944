#include "cpu/int8_inputs.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/testing/instruction_sets.h"
#include "quant/rotation.h"
#include "tensor/bfloat16.h"

using namespace treble;
using namespace treble::cpu;
using treble::testing::for_each_instruction_set;

namespace {

struct Quantized {
  std::vector<std::int8_t> codes;
  float scale;
};

/// One row in groups of `group`.
Quantized quantize(std::vector<float> x, std::int64_t group, Int8Activations mode, const float* factor = nullptr) {
  Quantized out{std::vector<std::int8_t>(x.size()), 0};
  std::vector<float> scratch(x.size());
  const auto count = static_cast<std::int64_t>(x.size());
  QuantizedInput input;
  input.codes = TensorView(out.codes.data(), DType::kI8, {1, count});
  input.scale = TensorView(&out.scale, DType::kF32, {1});
  input.rotation_group = group;
  if (factor) input.input_factor = TensorView(const_cast<float*>(factor), DType::kF32, {count});
  quantize_rows(TensorView(x.data(), DType::kF32, {1, count}), input, mode, 0, 1, scratch.data());
  return out;
}

/// The input of the published test vectors.
std::vector<float> published_row() {
  std::vector<float> x;
  for (int i = 0; i < 256; ++i) x.push_back(to_float(to_bfloat16(static_cast<float>(37 * i % 101 - 50) / 8)));
  return x;
}

std::vector<std::int8_t> head(const Quantized& row) {
  return {row.codes.begin(), row.codes.begin() + 16};
}

int weighted_sum(const Quantized& row) {
  int sum = 0;
  for (std::size_t i = 0; i < row.codes.size(); ++i) sum += row.codes[i] * static_cast<int>(i + 1);
  return sum;
}

}  // namespace

TEST_CASE("int8 inputs: scale and codes of the published row, in the precise and the fused mode") {
  for_each_instruction_set([] {
    const Quantized precise = quantize(published_row(), 256, Int8Activations::kPrecise);
    const Quantized fused = quantize(published_row(), 256, Int8Activations::kComfyFused);
    CHECK(precise.scale == 0.0831077769f);
    CHECK(fused.scale == precise.scale);
    CHECK(head(precise) ==
          std::vector<std::int8_t>{-28, 47, 103, -32, 5, -34, -55, 1, -38, -2, 92, -4, -25, -64, -46, 47});
    CHECK(head(fused) ==
          std::vector<std::int8_t>{-28, 47, 102, -32, 5, -34, -54, 1, -38, -2, 92, -4, -24, -64, -46, 48});
    CHECK(weighted_sum(fused) == -4561);
    CHECK(weighted_sum(precise) == -6181);
    int num_different = 0;
    for (std::size_t i = 0; i < 256; ++i) num_different += precise.codes[i] != fused.codes[i];
    CHECK(num_different == 35);
  });
}

TEST_CASE("int8 inputs: the rotation has the bits of its definition's order, for every group and length") {
  std::mt19937 random(9);
  std::normal_distribution<float> normal;
  for_each_instruction_set([&] {
    for (const auto& [group, count] : {std::pair<std::int64_t, std::int64_t>{1, 37},
                                       {4, 36},
                                       {16, 48},
                                       {64, 192},
                                       {256, 768},
                                       {1024, 1024},
                                       {4096, 8192}}) {
      CAPTURE(group);
      std::vector<float> x(static_cast<std::size_t>(count));
      for (float& value : x) value = normal(random);
      const Quantized row = quantize(x, group, Int8Activations::kPrecise);
      rotate(x.data(), count, group);
      float largest = 0;
      for (const float value : x) largest = std::max(largest, std::abs(value));
      const float scale = largest * (1.0f / 127.0f);
      CHECK(row.scale == scale);
      std::size_t num_different = 0;
      for (std::size_t i = 0; i < x.size(); ++i)
        num_different += static_cast<float>(row.codes[i]) != std::nearbyint(x[i] / scale);
      CHECK(num_different == 0);
    }
  });
}

TEST_CASE("int8 inputs: a quotient of exactly a half goes to the even code, and its neighbours to their own side") {
  for_each_instruction_set([] {
    std::vector<float> x(3 * 256 + 7, 0.0f);  // whole groups of vectors, and a tail
    x[0] = 127;                               // so that the scale is one
    std::vector<std::int8_t> expected(x.size(), 0);
    expected[0] = 127;
    for (std::size_t i = 1; i < x.size(); ++i) {
      const float half = static_cast<float>(i % 253) - 126.5f;
      x[i] = i % 3 == 0 ? half : std::nextafter(half, i % 3 == 1 ? 200.0f : -200.0f);
      expected[i] = static_cast<std::int8_t>(std::nearbyint(x[i]));
    }
    const Quantized row = quantize(x, 1, Int8Activations::kPrecise);
    CHECK(row.scale == 1.0f);
    CHECK(row.codes == expected);
  });
}

TEST_CASE("int8 inputs: the fallback mode takes scale and codes from the rotated values as bf16 holds them") {
  for_each_instruction_set([] {
    std::vector<float> x = published_row();
    x[0] = 100.3f;  // rounded to bf16 before the rotation
    const Quantized row = quantize(x, 256, Int8Activations::kComfyFallback);
    x[0] = to_float(to_bfloat16(x[0]));
    rotate(x.data(), 256, 256);
    float largest = 0;
    for (float& value : x) {
      value = to_float(to_bfloat16(value));
      largest = std::max(largest, std::abs(value));
    }
    CHECK(row.scale == largest * (1.0f / 127.0f));
    const float divisor = to_float(to_bfloat16(row.scale));
    std::size_t num_different = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float code = std::nearbyint(to_float(to_bfloat16(x[i] / divisor)));
      num_different += static_cast<float>(row.codes[i]) != std::min(code, 127.0f);
    }
    CHECK(num_different == 0);
  });
}

TEST_CASE("int8 inputs: the factor comes before the rotation") {
  for_each_instruction_set([] {
    std::vector<float> x = published_row(), factor(256), scaled = x;
    for (std::size_t i = 0; i < 256; ++i) {
      factor[i] = i % 3 == 0 ? 2.0f : 0.5f;
      scaled[i] *= factor[i];
    }
    CHECK(quantize(x, 256, Int8Activations::kPrecise, factor.data()).codes ==
          quantize(scaled, 256, Int8Activations::kPrecise).codes);
  });
}

TEST_CASE("int8 inputs: a row of zeros has codes of zero, one that is not finite a scale that is not a number") {
  for_each_instruction_set([] {
    const Quantized zeros = quantize(std::vector<float>(64), 16, Int8Activations::kPrecise);
    CHECK(zeros.scale == 1e-30f);
    CHECK(zeros.codes == std::vector<std::int8_t>(64));
    for (const float bad : {INFINITY, -INFINITY, std::numeric_limits<float>::quiet_NaN()}) {
      for (const std::int64_t group : {1, 16}) {
        std::vector<float> x(64, 1.0f);
        x[63] = bad;
        CHECK(std::isnan(quantize(x, group, Int8Activations::kComfyFused).scale));
      }
    }
  });
}
