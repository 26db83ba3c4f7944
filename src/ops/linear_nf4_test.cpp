#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "ops/testing/op_test.h"
#include "tensor/half.h"

using namespace treble;
using namespace treble::testing;

namespace {

/// An NF4 weight with random codes and scales, and the numbers that it stands for by the format's definition.
struct Nf4Case {
  std::vector<std::uint8_t> codes, nested_codes;
  std::vector<float> code_values, absmax, nested_values, nested_absmax;
  std::vector<double> values;  // [out_features, in_features]
  LinearWeight linear;
};

struct Nf4Shape {
  std::int64_t out_features, in_features;
  bool is_nested;
  DType dtype;
};

/// The nearest of all finite f16, the even one of two.
double nearest_half(double x) {
  const double size = std::abs(x);
  const double step = std::ldexp(1.0, std::max(size > 0 ? std::ilogb(size) : -14, -14) - 10);
  return std::copysign(std::nearbyint(size / step) * step, x);
}

Nf4Case make_nf4(Ops& ops, const Nf4Shape& shape, unsigned seed) {
  Nf4Case out;
  std::mt19937 random(seed);
  const auto uniform = [&](float low, float high) { return std::uniform_real_distribution<float>(low, high)(random); };
  const std::int64_t count = shape.out_features * shape.in_features, num_blocks = (count + 63) / 64;
  for (std::int64_t i = 0; i < (count + 1) / 2; ++i) out.codes.push_back(static_cast<std::uint8_t>(random()));
  for (int i = 0; i < 16; ++i) out.code_values.push_back(uniform(-1, 1));
  for (std::int64_t i = 0; i < num_blocks; ++i) {
    out.nested_codes.push_back(static_cast<std::uint8_t>(random()));
    // Down to where f16 has fewer bits.
    out.absmax.push_back(std::exp2(uniform(-18, 1)));
  }
  for (int i = 0; i < 256; ++i) out.nested_values.push_back(uniform(-1, 1));
  for (std::int64_t i = 0; i < (num_blocks + 255) / 256; ++i) out.nested_absmax.push_back(uniform(0.01f, 0.1f));

  const auto place = [&](auto& values, DType dtype) {
    return ops.place_weight(TensorView(values.data(), dtype, {static_cast<std::int64_t>(values.size())}));
  };
  Nf4& nf4 = out.linear.nf4;
  out.linear.format = WeightFormat::kNf4;
  out.linear.weight = place(out.codes, DType::kU8);
  nf4.out_features = shape.out_features;
  nf4.in_features = shape.in_features;
  nf4.dtype = shape.dtype;
  nf4.code_values = place(out.code_values, DType::kF32);
  nf4.nested_offset = 0.125f;
  if (shape.is_nested) {
    nf4.absmax = place(out.nested_codes, DType::kU8);
    nf4.nested_values = place(out.nested_values, DType::kF32);
    nf4.nested_absmax = place(out.nested_absmax, DType::kF32);
  } else {
    nf4.absmax = place(out.absmax, DType::kF32);
  }

  for (std::int64_t e = 0; e < count; ++e) {
    const auto block = static_cast<std::size_t>(e / 64);
    const std::uint8_t byte = out.codes[static_cast<std::size_t>(e / 2)];
    float absmax = out.absmax[block];
    if (shape.is_nested) {
      absmax = out.nested_values[out.nested_codes[block]] * out.nested_absmax[block / 256];
      absmax += nf4.nested_offset;
    }
    const float product = out.code_values[e % 2 == 0 ? byte >> 4 : byte & 15] * absmax;
    const double value = static_cast<double>(product);
    out.values.push_back(shape.dtype == DType::kF16 ? nearest_half(value) : rounded(shape.dtype, value));
  }
  return out;
}

/// Input rows that read one weight column each: the output is the weight.
std::vector<double> identity(std::int64_t size) {
  std::vector<double> out(static_cast<std::size_t>(size * size));
  for (std::int64_t i = 0; i < size; ++i) out[static_cast<std::size_t>(i * size + i)] = 1;
  return out;
}

std::vector<double> transposed(const std::vector<double>& values, std::int64_t rows, std::int64_t columns) {
  std::vector<double> out;
  for (std::int64_t c = 0; c < columns; ++c)
    for (std::int64_t r = 0; r < rows; ++r) out.push_back(values[static_cast<std::size_t>(r * columns + c)]);
  return out;
}

/// input W^T, with W [out_features, in_features] row by row.
std::vector<double> product(const Operand& input, std::int64_t in_features, const std::vector<double>& values) {
  const std::int64_t total_tokens = std::ssize(input.values) / in_features;
  const std::int64_t out_features = std::ssize(values) / in_features;
  std::vector<double> result;
  for (std::int64_t t = 0; t < total_tokens; ++t) {
    for (std::int64_t o = 0; o < out_features; ++o) {
      double sum = 0;
      for (std::int64_t i = 0; i < in_features; ++i)
        sum += input[t * in_features + i] * values[static_cast<std::size_t>(o * in_features + i)];
      result.push_back(sum);
    }
  }
  return result;
}

/// silu(gate) up, rounded as the operation rounds.
std::vector<double> swiglu(DType act, const std::vector<double>& gate, const std::vector<double>& up) {
  std::vector<double> expected;
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const double g = rounded(act, gate[i]);
    const double silu = rounded(act, g / (1 + std::exp(-g)));
    expected.push_back(rounded(act, silu * rounded(act, up[i])));
  }
  return expected;
}

}  // namespace

TEST_CASE("linear nf4: weights are the format's to the last bit: nested or not, in every dtype, blocks across rows") {
  constexpr Tolerance kExact = {0, 0};
  for (const Backend& backend : backends()) {
    OpTest test("linear nf4", backend, 61);
    unsigned seed = 0;
    for (const auto& [out_features, in_features] : {std::pair<std::int64_t, std::int64_t>{7, 128}, {50, 33}, {5, 77}}) {
      for (const bool is_nested : {false, true}) {
        for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
          CAPTURE(in_features);
          CAPTURE(is_nested);
          const Nf4Case weight = make_nf4(test.ops(), {out_features, in_features, is_nested, dtype}, ++seed);
          const Operand input = test.with_values(test.act(), {in_features, in_features}, identity(in_features));
          const TensorView out = test.output(DType::kF32, {in_features, out_features});
          const Linear::Output output{&weight.linear, out};
          test.ops().linear({.input = input.view, .outputs = {&output, 1}});
          std::vector<double> values = weight.values;
          if (backend.rounds_nf4_to_bf16)
            std::ranges::transform(values, values.begin(), [](double x) { return rounded(DType::kBF16, x); });
          test.expect(out, transposed(values, out_features, in_features), kExact);
        }
      }
    }
  }
}

TEST_CASE("linear nf4: products and SwiGLU of codes, beside plain weights of the same input") {
  for (const Backend& backend : backends()) {
    OpTest test("linear nf4", backend, 62);
    for (const std::int64_t total_tokens : {1, 40, 200}) {
      constexpr std::int64_t kIn = 1100, kOut = 52;
      const Nf4Case weight = make_nf4(test.ops(), {kOut, kIn, true, DType::kBF16}, 5);
      const Operand plain = test.normal(DType::kBF16, {kOut, kIn}, 0.1);
      const LinearWeight dense = {.weight = plain.view};
      const Operand input = test.normal(test.act(), {total_tokens, kIn}, 0.1);
      const TensorView out = test.output(test.act(), {total_tokens, kOut});
      const TensorView dense_out = test.output(test.act(), {total_tokens, kOut});
      const std::array<Linear::Output, 2> outputs = {Linear::Output{&weight.linear, out}, {&dense, dense_out}};
      test.ops().linear({.input = input.view, .outputs = outputs});

      // Scales around 0.125: terms of about 0.1 * 0.1.
      const Tolerance close = tolerance(test.act(), kIn, 0.01);
      const std::vector<double> gate = product(input, kIn, weight.values), up = product(input, kIn, plain.values);
      test.expect(out, gate, close);
      test.expect(dense_out, up, close);

      const TensorView activated = test.output(test.act(), {total_tokens, kOut});
      test.ops().linear_swiglu({.input = input.view, .gate = &weight.linear, .up = &dense, .out = activated});
      const Tolerance chain = tolerance(test.act(), kIn, 0.02, 4);
      test.expect(activated, swiglu(test.act(), gate, up), chain);
    }
  }
}

TEST_CASE("linear nf4: Linears whose outputs lie side by side give what each gives alone: rows, biases, sums") {
  for (const Backend& backend : backends()) {
    OpTest test("linear nf4", backend, 63);
    constexpr std::int64_t kIn = 64, kRows[] = {24, 8, 40, 16, 8}, kAll = 96;
    const Operand input = test.with_values(test.act(), {kIn, kIn}, identity(kIn));
    std::vector<Nf4Case> cases;
    for (unsigned i = 0; i < 5; ++i)
      cases.push_back(make_nf4(test.ops(), {2 * kRows[i], kIn, i % 2 == 0, DType::kBF16}, 20 + i));
    const Operand bias = test.normal(DType::kBF16, {kAll});
    for (const bool has_bias : {false, true}) {
      CAPTURE(has_bias);
      // The second half of each weight's rows.
      std::vector<LinearWeight> halves;
      std::vector<double> values, biases;
      for (std::int64_t i = 0, begin = 0; i < 5; begin += kRows[i++]) {
        const Nf4Case& whole = cases[static_cast<std::size_t>(i)];
        halves.push_back(whole.linear.rows(kRows[i], 2 * kRows[i]));
        values.insert(values.end(), whole.values.begin() + kRows[i] * kIn, whole.values.end());
        if (has_bias) halves.back().bias = bias.view.rows(begin, begin + kRows[i]);
      }
      const Operand wide = test.normal(DType::kF32, {kIn, kAll});
      for (const Epilogue epilogue : {Epilogue::kAdd, Epilogue::kStore}) {
        std::vector<Linear::Output> outputs;
        for (std::int64_t i = 0, begin = 0; i < 5; begin += kRows[i++]) {
          const auto at = static_cast<std::size_t>(i);
          outputs.push_back({&halves[at], wide.view.slice(1, begin, begin + kRows[i]), epilogue});
        }
        test.ops().linear({.input = input.view, .outputs = outputs});
        std::vector<double> expected = transposed(values, kAll, kIn);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          if (has_bias) expected[i] += bias.values[i % kAll];
          if (epilogue == Epilogue::kAdd) expected[i] += wide.values[i];
        }
        // Two sums in fp32, of numbers of about 1.
        test.expect(wide.view, expected, tolerance(DType::kF32, 2, 2));
      }
    }
  }
}

TEST_CASE("linear nf4: weights as releases have them, codes after codes: products, sums and SwiGLU") {
  for (const Backend& backend : backends()) {
    OpTest test("linear nf4", backend, 64);
    constexpr std::int64_t kIn = 1024, kRows[] = {64, 16, 32, 16, 48}, kAll = 176, kInner = 96;
    std::vector<Nf4Case> cases;
    for (unsigned i = 0; i < 7; ++i)
      cases.push_back(make_nf4(test.ops(), {i < 5 ? kRows[i] : kInner, kIn, true, DType::kBF16}, 40 + i));
    for (Nf4Case& one : cases) {
      const TensorView codes(one.codes.data(), DType::kU8, {std::ssize(one.codes)});
      one.linear.weight = test.ops().place_weight(codes);
    }
    std::vector<double> values;
    for (std::size_t i = 0; i < 5; ++i) values.insert(values.end(), cases[i].values.begin(), cases[i].values.end());
    // Scales around 0.125: terms of about 0.1 * 0.1.
    const Tolerance close = tolerance(test.act(), kIn, 0.01), chain = tolerance(test.act(), kIn, 0.02, 4);
    // A product may be rounded before it is added: 1,024 terms spread by 0.25, the largest of many is five times that.
    Tolerance added = close;
    if (test.act() == DType::kBF16) added.absolute += 5 * 0.25 * std::ldexp(1.0, -9);
    for (const std::int64_t total_tokens : {1, 70, 300}) {
      const Operand input = test.normal(test.act(), {total_tokens, kIn}, 0.1);
      const Operand wide = test.normal(test.act(), {total_tokens, kAll}, 0.1);
      std::vector<double> expected = product(input, kIn, values);
      for (const Epilogue epilogue : {Epilogue::kAdd, Epilogue::kStore}) {
        std::vector<Linear::Output> outputs;
        for (std::int64_t i = 0, begin = 0; i < 5; begin += kRows[i++])
          outputs.push_back(
              {&cases[static_cast<std::size_t>(i)].linear, wide.view.slice(1, begin, begin + kRows[i]), epilogue});
        test.ops().linear({.input = input.view, .outputs = outputs});
        std::vector<double> sums = expected;
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += epilogue == Epilogue::kAdd ? wide.values[i] : 0;
        test.expect(wide.view, sums, epilogue == Epilogue::kAdd ? added : close);
      }
      const TensorView out = test.output(test.act(), {total_tokens, kInner});
      test.ops().linear_swiglu({.input = input.view, .gate = &cases[5].linear, .up = &cases[6].linear, .out = out});
      const std::vector<double> gate = product(input, kIn, cases[5].values), up = product(input, kIn, cases[6].values);
      test.expect(out, swiglu(test.act(), gate, up), chain);
    }
  }
}
