// Every tile of the products on Hopper, against the same arithmetic done here, on values whose sums are exact in fp32:
// equal to the bit, and nothing written beside the result.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "cuda/linear_int8_wgmma_sm90.h"
#include "cuda/linear_wgmma_sm90.h"
#include "device_array.h"
#include "tensor/bfloat16.h"

namespace treble::cuda {
namespace {

float rounded(float x) {
  return to_float(to_bfloat16(x));
}

/// One product, y [T, N] of x [T, K] and w [N, K]; rows of x and y lie further apart than they are long.
struct Sizes {
  std::int64_t tokens, out_features, in_features;
  std::int64_t x_stride() const { return in_features + 48; }
  std::int64_t y_stride() const { return out_features + 24; }
};
// Fewer tokens than a tile, one more than some, several tiles; rows that no tile divides; one and several stages.
constexpr Sizes kSizes[] = {{1, 16, 16}, {63, 272, 144}, {65, 528, 128}, {193, 144, 1040}, {300, 1104, 656}};

/// From `first_of_few` on, tiles are for no more tokens than they have.
template <typename Tile>
bool takes(Tile tile, Tile first_of_few, const Sizes& sizes) {
  return tile < first_of_few || sizes.tokens <= shape_of(tile).num_tokens;
}

enum class Epilogue { kPlain, kAdds, kSwiglu };
constexpr Epilogue kEpilogues[] = {Epilogue::kPlain, Epilogue::kAdds, Epilogue::kSwiglu};

/// What is in y before, two rows more than are written.
std::vector<bfloat16> values_before(const Sizes& sizes) {
  std::vector<bfloat16> y(static_cast<std::size_t>((sizes.tokens + 2) * sizes.y_stride()));
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = to_bfloat16(static_cast<float>(i % 251) - 125.0f);
  return y;
}

/// The device's fast quotient is 0 where the divisor is 2^126 or more: of a silu, less than 88 / 2^126.
constexpr float kFastQuotient = 1.1e-36f;

/// Elements of y that are not as expected. SwiGLU's exponential is the device's fast one, so that its silu may be
/// rounded the other way, and the product of it after that: two units of bf16's last place.
template <typename Expected>
int count_wrong(const Sizes& sizes, Epilogue epilogue, const std::vector<bfloat16>& y, const Expected& expected) {
  const std::vector<bfloat16> before = values_before(sizes);
  int num_wrong = 0;
  for (std::int64_t t = 0; t < sizes.tokens + 2; ++t) {
    for (std::int64_t n = 0; n < sizes.y_stride(); ++n) {
      const auto at = static_cast<std::size_t>(t * sizes.y_stride() + n);
      const float got = to_float(y[at]), old = to_float(before[at]);
      if (t >= sizes.tokens || n >= sizes.out_features) {
        num_wrong += got != old;
      } else if (epilogue == Epilogue::kSwiglu) {
        const float gate = rounded(expected(t, n, 0)), up = rounded(expected(t, n, 1));
        const float want = rounded(rounded(gate / (1 + std::exp(-gate))) * up);
        const float allowed = 2 * std::ldexp(std::abs(want), -7) + kFastQuotient * std::abs(up);
        num_wrong += !(std::abs(got - want) <= allowed) && !(std::isnan(got) && std::isnan(want));
      } else {
        const float sum = expected(t, n, 0), want = rounded(epilogue == Epilogue::kAdds ? sum + old : sum);
        num_wrong += got != want && !(std::isnan(got) && std::isnan(want));
      }
    }
  }
  return num_wrong;
}

/// An INT8 product, and what its sums are.
class Int8Case {
 public:
  Int8Case(const Sizes& sizes, std::vector<std::int8_t> x, std::vector<std::int8_t> w)
      : sizes_(sizes),
        x_scale_(static_cast<std::size_t>(sizes.tokens), 1.0f),
        w_scale_(static_cast<std::size_t>(2 * sizes.out_features), 1.0f),
        bias_(w_scale_.size(), 0.0f),
        x_(std::move(x)),
        w_(std::move(w)) {
    for (std::int64_t t = 0; t < sizes.tokens; ++t) {
      for (std::int64_t n = 0; n < 2 * sizes.out_features; ++n) {
        std::int32_t sum = 0;
        for (std::int64_t k = 0; k < sizes.in_features; ++k)
          sum += x_[static_cast<std::size_t>(t * sizes.x_stride() + k)] *
                 w_[static_cast<std::size_t>(n * sizes.in_features + k)];
        sums_.push_back(sum);
      }
    }
  }

  std::vector<float>& x_scale() { return x_scale_; }
  std::vector<float>& w_scale() { return w_scale_; }
  std::vector<float>& bias() { return bias_; }
  std::int32_t sum(std::int64_t t, std::int64_t n) const {
    return sums_[static_cast<std::size_t>(t * 2 * sizes_.out_features + n)];
  }

  void check_tiles(int num_sms) const {
    const DeviceArray<std::int8_t> x(x_), w(w_);
    const DeviceArray<float> x_scale(x_scale_), w_scale(w_scale_), bias(bias_);
    const Int8Operands input{x.get(), sizes_.x_stride(), x_scale.get()};
    const std::int64_t rows = sizes_.out_features;
    const Int8Weight first{w.get(), w_scale.get(), bias.get()},
        second{w.get() + rows * sizes_.in_features, w_scale.get() + rows, bias.get() + rows};
    for (const Epilogue epilogue : kEpilogues) {
      for (int tile = 0; tile < kNumWgmmaInt8Tiles; ++tile) {
        if (!takes(static_cast<WgmmaInt8Tile>(tile), WgmmaInt8Tile::k384x128, sizes_)) continue;
        CAPTURE(tile);
        CAPTURE(static_cast<int>(epilogue));
        const DeviceArray<bfloat16> y(values_before(sizes_));
        if (epilogue == Epilogue::kSwiglu) {
          swiglu_int8_wgmma_sm90(
              {sizes_.tokens, rows, sizes_.in_features, input, first, second, y.get(), sizes_.y_stride()},
              static_cast<WgmmaInt8Tile>(tile), num_sms, nullptr);
        } else {
          linear_int8_wgmma_sm90({sizes_.tokens, rows, sizes_.in_features, input, first, y.get(), sizes_.y_stride(),
                                  DType::kBF16, epilogue == Epilogue::kAdds},
                                 static_cast<WgmmaInt8Tile>(tile), num_sms, nullptr);
        }
        CHECK(count_wrong(sizes_, epilogue, y.read(), [&](std::int64_t t, std::int64_t n, int matrix) {
                const auto row = static_cast<std::size_t>(n + matrix * rows);
                const float scaled =
                    static_cast<float>(sum(t, n + matrix * rows)) * x_scale_[static_cast<std::size_t>(t)];
                return scaled * w_scale_[row] + bias_[row];
              }) == 0);
      }
    }
  }

 private:
  Sizes sizes_;
  std::vector<float> x_scale_, w_scale_, bias_;
  std::vector<std::int8_t> x_, w_;
  std::vector<std::int32_t> sums_;
};

template <typename Make>
std::vector<std::int8_t> make_codes(std::int64_t count, const Make& make) {
  std::vector<std::int8_t> codes(static_cast<std::size_t>(count));
  std::ranges::generate(codes, [&] { return static_cast<std::int8_t>(make()); });
  return codes;
}

TEST_CASE("wgmma tiles: INT8 sums are exact to the last bit, with every tile") {
  const int num_sms = num_hopper_sms();
  if (num_sms == 0) return;
  for (const Sizes& sizes : kSizes) {
    CAPTURE(sizes.tokens);
    std::mt19937 random(1);
    std::uniform_int_distribution<int> any(-127, 126);
    const auto w = make_codes(2 * sizes.out_features * sizes.in_features, [&] { return any(random); });
    const auto first = make_codes(sizes.in_features, [&] { return any(random); });
    // Every token is the first but for one code, one more. The bias takes the first token's sums away, so that what is
    // left is a code of the weight, which bf16 holds.
    std::vector<std::int8_t> x(static_cast<std::size_t>(sizes.tokens * sizes.x_stride()), 99);
    for (std::int64_t t = 0; t < sizes.tokens; ++t) {
      const auto row = x.begin() + t * sizes.x_stride();
      std::ranges::copy(first, row);
      if (t > 0) ++row[t * 37 % sizes.in_features];
    }
    Int8Case test(sizes, x, w);
    for (std::size_t n = 0; n < test.bias().size(); ++n)
      test.bias()[n] = -static_cast<float>(test.sum(0, static_cast<std::int64_t>(n)));
    test.check_tiles(num_sms);
  }
}

TEST_CASE("wgmma tiles: INT8 products of extreme codes are scaled, biased and rounded in the stated order") {
  const int num_sms = num_hopper_sms();
  if (num_sms == 0) return;
  for (const Sizes& sizes : kSizes) {
    CAPTURE(sizes.tokens);
    std::mt19937 random(2);
    const auto extreme = [&] { return random() & 1 ? 127 : -128; };
    Int8Case test(sizes, make_codes(sizes.tokens * sizes.x_stride(), extreme),
                  make_codes(2 * sizes.out_features * sizes.in_features, [&] { return -128; }));
    std::uniform_real_distribution<float> scale(1e-4f, 2e-3f), bias(-2, 2);
    for (float& x : test.x_scale()) x = scale(random);
    for (float& x : test.w_scale()) x = scale(random);
    for (float& x : test.bias()) x = bias(random);
    test.check_tiles(num_sms);
  }
}

TEST_CASE("wgmma tiles: an INT8 token that is not a number leaves the tokens beside it alone") {
  const int num_sms = num_hopper_sms();
  if (num_sms == 0) return;
  const Sizes sizes = kSizes[3];
  std::mt19937 random(3);
  const auto any = [&] { return static_cast<int>(random() % 256) - 128; };
  Int8Case test(sizes, make_codes(sizes.tokens * sizes.x_stride(), any),
                make_codes(2 * sizes.out_features * sizes.in_features, any));
  for (float& x : test.x_scale()) x = 1e-3f;
  for (const std::size_t t : {0, 64, 129, 192}) test.x_scale()[t] = std::numeric_limits<float>::quiet_NaN();
  test.check_tiles(num_sms);
}

TEST_CASE("wgmma tiles: bf16 products whose sums are exact are rounded once, with every tile") {
  const int num_sms = num_hopper_sms();
  if (num_sms == 0) return;
  for (const Sizes& sizes : kSizes) {
    CAPTURE(sizes.tokens);
    const std::int64_t rows = sizes.out_features;
    std::mt19937 random(4);
    // Products of quarters are 16ths: every sum of 1,040 is a multiple of 1/16 below 2^14, exact in fp32.
    const auto quarters = [&](std::int64_t count) {
      std::vector<bfloat16> values(static_cast<std::size_t>(count));
      std::ranges::generate(values, [&] { return to_bfloat16((static_cast<float>(random() % 31) - 15) / 4); });
      return values;
    };
    const std::vector<bfloat16> x_values = quarters(sizes.tokens * sizes.x_stride()),
                                w_values = quarters(2 * rows * sizes.in_features);
    const DeviceArray<bfloat16> x(x_values), w(w_values);
    std::vector<float> sums;
    for (std::int64_t t = 0; t < sizes.tokens; ++t) {
      for (std::int64_t n = 0; n < 2 * rows; ++n) {
        float sum = 0;
        for (std::int64_t k = 0; k < sizes.in_features; ++k)
          sum += to_float(x_values[static_cast<std::size_t>(t * sizes.x_stride() + k)]) *
                 to_float(w_values[static_cast<std::size_t>(n * sizes.in_features + k)]);
        sums.push_back(sum);
      }
    }
    for (const Epilogue epilogue : kEpilogues) {
      for (int tile = 0; tile < kNumWgmmaTiles; ++tile) {
        if (!takes(static_cast<WgmmaTile>(tile), WgmmaTile::k384x128, sizes)) continue;
        CAPTURE(tile);
        CAPTURE(static_cast<int>(epilogue));
        const DeviceArray<bfloat16> y(values_before(sizes));
        if (epilogue == Epilogue::kSwiglu) {
          swiglu_wgmma_sm90({sizes.tokens, rows, sizes.in_features, x.get(), sizes.x_stride(), w.get(),
                             w.get() + rows * sizes.in_features, y.get(), sizes.y_stride()},
                            static_cast<WgmmaTile>(tile), num_sms, nullptr);
        } else {
          linear_wgmma_sm90({sizes.tokens, rows, sizes.in_features, x.get(), sizes.x_stride(), w.get(), y.get(),
                             sizes.y_stride(), epilogue == Epilogue::kAdds},
                            static_cast<WgmmaTile>(tile), num_sms, nullptr);
        }
        CHECK(count_wrong(sizes, epilogue, y.read(), [&](std::int64_t t, std::int64_t n, int matrix) {
                return sums[static_cast<std::size_t>(t * 2 * rows + n + matrix * rows)];
              }) == 0);
      }
    }
  }
}

}  // namespace
}  // namespace treble::cuda
