// Every tile of the products with 4-bit weights on Hopper, against the bf16 products with the weights that the codes
// stand for, decoded here: equal to the bit, and nothing written beside the result.

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "cuda/linear_nf4_wgmma_sm90.h"
#include "cuda/linear_wgmma_sm90.h"
#include "device_array.h"
#include "quant/nf4.h"
#include "tensor/bfloat16.h"

namespace treble::cuda {
namespace {

/// One weight of random codes on the device, and what they stand for.
class Nf4Case {
 public:
  /// @param change  of this weight's tables from others'
  Nf4Case(std::int64_t rows, std::int64_t in_features, float change, std::mt19937& random)
      : rows_(rows), code_values_(16), nested_values_(256), offset_(0.03f + change) {
    for (std::size_t i = 0; i < 16; ++i) code_values_[i] = kNf4Values[i] * (1 + change);
    for (std::size_t i = 0; i < 256; ++i) nested_values_[i] = (static_cast<float>(i) - 127) / 128 * (1 - change);
    const auto bytes = [&](std::int64_t count) {
      std::vector<std::uint8_t> values(static_cast<std::size_t>(count));
      std::ranges::generate(values, [&] { return static_cast<std::uint8_t>(random()); });
      return values;
    };
    codes_ = bytes(rows * in_features / 2);
    absmax_ = bytes(rows * in_features / kBlock);
    std::uniform_real_distribution<float> scale(0.01f, 0.03f);
    nested_absmax_.resize(absmax_.size() / kNestedBlock + 1);
    for (float& x : nested_absmax_) x = scale(random);
  }

  const std::vector<std::uint8_t>& codes() const { return codes_; }
  std::vector<bfloat16> weights() const {
    std::vector<bfloat16> weights(2 * codes_.size());
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const std::size_t block = i / kBlock, code = i % 2 == 0 ? codes_[i / 2] >> 4 : codes_[i / 2] & 15;
      const float nested = nested_values_[absmax_[block]] * nested_absmax_[block / kNestedBlock];
      const float scale = nested + offset_;
      weights[i] = to_bfloat16(code_values_[code] * scale);
    }
    return weights;
  }

  class OnDevice {
   public:
    explicit OnDevice(const Nf4Case& of)
        : code_values_(of.code_values_),
          nested_values_(of.nested_values_),
          nested_absmax_(of.nested_absmax_),
          absmax_(of.absmax_),
          offset_(of.offset_),
          rows_(static_cast<int>(of.rows_)) {}
    Nf4Scales scales() const {
      return {.code_values = code_values_.get(),
              .absmax = absmax_.get(),
              .nested_values = nested_values_.get(),
              .nested_absmax = nested_absmax_.get(),
              .nested_offset = offset_,
              .out_features = rows_};
    }

   private:
    DeviceArray<float> code_values_, nested_values_, nested_absmax_;
    DeviceArray<std::uint8_t> absmax_;
    float offset_;
    int rows_;
  };

 private:
  static constexpr std::size_t kBlock = 64, kNestedBlock = 256;
  std::int64_t rows_;
  std::vector<float> code_values_, nested_values_, nested_absmax_;
  std::vector<std::uint8_t> codes_, absmax_;
  float offset_;
};

template <typename T>
std::vector<T> together(std::vector<T> first, const std::vector<T>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// One product, y [T, first + second] of x [T, K] and two weights; of SwiGLU both have the rows of the first.
struct Sizes {
  std::int64_t tokens, first, second, in_features;
};
// Fewer tokens than a tile, one more than some, several tiles; rows that no tile divides; 8 stages and more.
constexpr Sizes kSizes[] = {{1, 8, 8, 512}, {65, 272, 48, 1536}, {300, 528, 400, 1024}};
enum class Epilogue { kPlain, kAdds, kSwiglu };

TEST_CASE("wgmma tiles: an NF4 product has the digits of the bf16 product with the weights that the codes stand for") {
  const int num_sms = num_hopper_sms();
  if (num_sms == 0) return;
  for (const Sizes& sizes : kSizes) {
    CAPTURE(sizes.tokens);
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    const std::int64_t x_stride = sizes.in_features + 48, y_stride = sizes.first + sizes.second + 24;
    std::vector<bfloat16> x_values(static_cast<std::size_t>(sizes.tokens * x_stride));
    std::ranges::generate(x_values, [&] { return to_bfloat16(normal(random)); });
    const std::vector<bfloat16> before(static_cast<std::size_t>((sizes.tokens + 2) * y_stride), to_bfloat16(2.5f));
    const DeviceArray<bfloat16> x(x_values);
    for (const Epilogue epilogue : {Epilogue::kPlain, Epilogue::kAdds, Epilogue::kSwiglu}) {
      CAPTURE(static_cast<int>(epilogue));
      const bool is_swiglu = epilogue == Epilogue::kSwiglu, adds = epilogue == Epilogue::kAdds;
      const Nf4Case first(sizes.first, sizes.in_features, 0, random),
          second(is_swiglu ? sizes.first : sizes.second, sizes.in_features, 1e-6f, random);
      const DeviceArray<bfloat16> weights(together(first.weights(), second.weights())), expected(before);
      const DeviceArray<std::uint8_t> codes(together(first.codes(), second.codes()));
      const Nf4Case::OnDevice first_there(first), second_there(second);
      const std::int64_t rows = sizes.first + sizes.second, first_size = sizes.first * sizes.in_features;
      constexpr auto kAnyTile = WgmmaTile::k128x256;
      if (is_swiglu) {
        swiglu_wgmma_sm90({sizes.tokens, sizes.first, sizes.in_features, x.get(), x_stride, weights.get(),
                           weights.get() + first_size, expected.get(), y_stride},
                          kAnyTile, num_sms, nullptr);
      } else {
        linear_wgmma_sm90(
            {sizes.tokens, rows, sizes.in_features, x.get(), x_stride, weights.get(), expected.get(), y_stride, adds},
            kAnyTile, num_sms, nullptr);
      }
      const std::vector<bfloat16> wanted = expected.read();
      for (int tile = 0; tile < kNumWgmmaNf4Tiles; ++tile) {
        CAPTURE(tile);
        const DeviceArray<bfloat16> y(before);
        if (is_swiglu) {
          swiglu_nf4_wgmma_sm90(
              {sizes.tokens, sizes.first, sizes.in_features, x.get(), x_stride, codes.get(),
               codes.get() + first_size / 2, first_there.scales(), second_there.scales(), 8, y.get(), y_stride},
              static_cast<WgmmaNf4Tile>(tile), num_sms, nullptr);
        } else {
          linear_nf4_wgmma_sm90({sizes.tokens,
                                 rows,
                                 sizes.in_features,
                                 x.get(),
                                 x_stride,
                                 {codes.get(), {first_there.scales(), second_there.scales()}, 2, 8},
                                 y.get(),
                                 y_stride,
                                 adds},
                                static_cast<WgmmaNf4Tile>(tile), num_sms, nullptr);
        }
        const std::vector<bfloat16> got = y.read();
        int num_wrong = 0;
        for (std::size_t i = 0; i < got.size(); ++i) num_wrong += to_float(got[i]) != to_float(wanted[i]);
        CHECK(num_wrong == 0);
      }
    }
  }
}

}  // namespace
}  // namespace treble::cuda
