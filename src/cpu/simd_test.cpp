#include "cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/simd_test.cpp"
#include <hwy/foreach_target.h>  // keep in this order
#include <hwy/highway.h>

#include <vector>

#include "cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treble::cpu::HWY_NAMESPACE {

/// Each function of simd-inl.h over a whole array.
void exponentials(const float* in, std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; i += kLanes) store(exponential(load(in + i, count - i)), out + i, count - i);
}
void silus(const float* in, std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; i += kLanes) store(silu(load(in + i, count - i)), out + i, count - i);
}
void sigmoids(const float* in, std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; i += kLanes) store(sigmoid(load(in + i, count - i)), out + i, count - i);
}
void narrow(const float* in, std::int64_t count, bfloat16* out) {
  for (std::int64_t i = 0; i < count; i += kLanes) store(load(in + i, count - i), out + i, count - i);
}
void round_trip(const float* in, std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; i += kLanes)
    store(round_to<bfloat16>(load(in + i, count - i)), out + i, count - i);
}
void widen(const bfloat16* in, std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; i += kLanes) store(load(in + i, count - i), out + i, count - i);
}
float total(const float* in, std::int64_t count) {
  VecF32 totals = zero();
  for (std::int64_t i = 0; i < count; i += kLanes) totals = hn::Add(totals, load(in + i, count - i));
  return sum(totals);
}

}  // namespace treble::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/testing/instruction_sets.h"

using namespace treble;
using namespace treble::cpu;
using treble::testing::for_each_instruction_set;

namespace treble::cpu {

HWY_EXPORT(exponentials);
HWY_EXPORT(silus);
HWY_EXPORT(sigmoids);
HWY_EXPORT(narrow);
HWY_EXPORT(round_trip);
HWY_EXPORT(widen);
HWY_EXPORT(total);

}  // namespace treble::cpu

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Units in the last place between a float and the exact value.
double ulps(float actual, double expected) {
  return std::abs(static_cast<double>(actual) - expected) / std::ldexp(1.0, std::max(std::ilogb(expected), -126) - 23);
}

std::vector<float> range(double begin, double end, std::int64_t count) {
  std::vector<float> out;
  for (std::int64_t i = 0; i < count; ++i)
    out.push_back(static_cast<float>(begin + (end - begin) * static_cast<double>(i) / static_cast<double>(count)));
  return out;
}

}  // namespace

TEST_CASE("simd: exp, sigmoid and silu are within a few units in the last place of the exact value") {
  for_each_instruction_set([] {
    const std::vector<float> x = range(-87, 88.7, 300007);
    std::vector<float> exponential(x.size()), sigmoid(x.size()), silu(x.size());
    HWY_DYNAMIC_DISPATCH(exponentials)(x.data(), std::ssize(x), exponential.data());
    HWY_DYNAMIC_DISPATCH(sigmoids)(x.data(), std::ssize(x), sigmoid.data());
    HWY_DYNAMIC_DISPATCH(silus)(x.data(), std::ssize(x), silu.data());
    double worst_exp = 0, worst_sigmoid = 0, worst_silu = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = static_cast<double>(x[i]);
      worst_exp = std::max(worst_exp, ulps(exponential[i], std::exp(exact)));
      worst_sigmoid = std::max(worst_sigmoid, ulps(sigmoid[i], 1 / (1 + std::exp(-exact))));
      worst_silu = std::max(worst_silu, ulps(silu[i], exact / (1 + std::exp(-exact))));
    }
    CHECK(worst_exp < 1.5);
    CHECK(worst_sigmoid < 3);
    CHECK(worst_silu < 3);
  });
}

TEST_CASE("simd: exp of infinities, NaN and what overflows") {
  for_each_instruction_set([] {
    const std::vector<float> x = {kInfinity, -kInfinity, 1000, -1000, 89, -104.5f, kNan, 0, -0.0f};
    std::vector<float> y(x.size());
    HWY_DYNAMIC_DISPATCH(exponentials)(x.data(), std::ssize(x), y.data());
    CHECK(y[0] == kInfinity);
    CHECK(y[1] == 0);
    CHECK(y[2] == kInfinity);
    CHECK(y[3] == 0);
    CHECK(y[4] == kInfinity);
    CHECK(y[5] == 0);
    CHECK(std::isnan(y[6]));
    CHECK(y[7] == 1);
    CHECK(y[8] == 1);
    HWY_DYNAMIC_DISPATCH(silus)(x.data(), std::ssize(x), y.data());
    CHECK(y[0] == kInfinity);
    CHECK(y[2] == 1000);
    CHECK(y[3] == 0);
    CHECK(std::isnan(y[6]));
  });
}

TEST_CASE("simd: rounding to bfloat16 equals the scalar one for every kind of float") {
  std::vector<float> x = {0,
                          -0.0f,
                          kInfinity,
                          -kInfinity,
                          kNan,
                          std::bit_cast<float>(0x7f800001u),
                          std::bit_cast<float>(0xffffffffu),
                          std::numeric_limits<float>::max()};
  // Both sides of every tie, in all exponents and both signs.
  for (std::uint32_t upper = 0; upper < 0x10000; upper += 7) {
    for (const std::uint32_t lower : {0x0000u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      x.push_back(std::bit_cast<float>(upper << 16 | lower));
  }
  for_each_instruction_set([&] {
    std::vector<bfloat16> narrowed(x.size());
    std::vector<float> back(x.size()), rounded(x.size());
    HWY_DYNAMIC_DISPATCH(narrow)(x.data(), std::ssize(x), narrowed.data());
    HWY_DYNAMIC_DISPATCH(widen)(narrowed.data(), std::ssize(x), back.data());
    HWY_DYNAMIC_DISPATCH(round_trip)(x.data(), std::ssize(x), rounded.data());
    std::size_t num_different = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bfloat16 expected = to_bfloat16(x[i]);
      const auto bits = std::bit_cast<std::uint32_t>(to_float(expected));
      num_different += narrowed[i].bits != expected.bits || std::bit_cast<std::uint32_t>(back[i]) != bits ||
                       std::bit_cast<std::uint32_t>(rounded[i]) != bits;
    }
    CHECK(num_different == 0);
  });
}

TEST_CASE("simd: arrays of every length are read and written to their end and not past it") {
  for_each_instruction_set([] {
    for (std::int64_t count = 1; count <= 35; ++count) {
      const std::vector<float> ones(static_cast<std::size_t>(count), 1.0f);
      CHECK(HWY_DYNAMIC_DISPATCH(total)(ones.data(), count) == static_cast<float>(count));
      std::vector<bfloat16> out(static_cast<std::size_t>(count) + 1, bfloat16{7});
      HWY_DYNAMIC_DISPATCH(narrow)(ones.data(), count, out.data());
      for (std::int64_t i = 0; i < count; ++i) CHECK(out[static_cast<std::size_t>(i)].bits == 0x3f80);
      CHECK(out.back().bits == 7);
    }
  });
}
#endif
