#include "media/pixel_rows.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "base/testing/instruction_sets.h"

namespace treble {
namespace {

using testing::for_each_instruction_set;

std::vector<std::uint8_t> noise(std::int64_t count) {
  std::mt19937 random(static_cast<unsigned>(count));
  std::vector<std::uint8_t> levels(static_cast<std::size_t>(count));
  // Extremes are common, so that sums leave 0..255 on both sides.
  for (std::uint8_t& level : levels) {
    const auto drawn = static_cast<unsigned>(random());
    level = drawn % 3 == 0 ? 0 : drawn % 3 == 1 ? 255 : static_cast<std::uint8_t>(drawn >> 8);
  }
  return levels;
}

std::uint8_t level_of(std::int64_t sum, int fraction_bits) {
  sum += std::int64_t{1} << (fraction_bits - 1);
  return static_cast<std::uint8_t>(std::clamp<std::int64_t>(sum >> fraction_bits, 0, 255));
}

constexpr std::pair<std::int64_t, std::int64_t> kSizes[] = {{1, 32},    {2, 32},    {5, 64},    {31, 32},
                                                            {33, 32},   {100, 96},  {100, 224}, {777, 64},
                                                            {4001, 32}, {330, 320}, {310, 320}, {320, 312}};

TEST_CASE("pixel_rows: a row is resized to the definition's levels with every instruction set") {
  for_each_instruction_set([] {
    for (const auto& [width_in, width_out] : kSizes) {
      CAPTURE(width_in);
      CAPTURE(width_out);
      const ResizeTaps taps = make_resize_taps(width_in, width_out);
      const std::vector<std::uint8_t> rgb = noise(3 * width_in);
      std::vector<std::int16_t> planes(static_cast<std::size_t>(3 * (width_in + kRowPadding)), std::int16_t{-1});
      std::vector<std::uint8_t> out(static_cast<std::size_t>(3 * width_out + kRowPadding)), expected;
      resize_row(rgb.data(), width_in, taps, planes.data(), out.data());
      for (std::int64_t o = 0; o < width_out; ++o) {
        for (std::int64_t channel = 0; channel < 3; ++channel) {
          std::int64_t sum = 0;
          const auto output = static_cast<std::size_t>(o);
          for (std::int64_t i = 0; i < taps.count[output]; ++i)
            sum += taps.of(o)[i] * rgb[static_cast<std::size_t>(3 * (taps.first[output] + i) + channel)];
          expected.push_back(level_of(sum, taps.fraction_bits));
        }
      }
      out.resize(expected.size());
      CHECK(out == expected);
    }
  });
}

TEST_CASE("pixel_rows: rows are combined to the definition's levels with every instruction set") {
  for_each_instruction_set([] {
    for (const auto& [height_in, height_out] : kSizes) {
      for (const std::int64_t num_bytes : {1, 3, 15, 16, 33, 96, 100}) {
        CAPTURE(height_in);
        CAPTURE(num_bytes);
        const ResizeTaps taps = make_resize_taps(height_in, height_out);
        const std::vector<std::uint8_t> levels = noise(height_in * num_bytes);
        std::vector<const std::uint8_t*> rows;
        const std::int64_t o = height_out / 3;
        const auto output = static_cast<std::size_t>(o);
        for (std::int64_t i = 0; i < taps.count[output]; ++i)
          rows.push_back(levels.data() + (taps.first[output] + i) * num_bytes);
        std::vector<std::uint8_t> out(static_cast<std::size_t>(num_bytes)), expected;
        resize_column(rows.data(), taps.of(o), taps.count[output], taps.fraction_bits, num_bytes, out.data());
        for (std::int64_t x = 0; x < num_bytes; ++x) {
          std::int64_t sum = 0;
          for (std::size_t i = 0; i < rows.size(); ++i) sum += taps.of(o)[i] * rows[i][x];
          expected.push_back(level_of(sum, taps.fraction_bits));
        }
        CHECK(out == expected);
      }
    }
  });
}

TEST_CASE("pixel_rows: a row's levels go to their patches and channels, and nowhere else, with every instruction set") {
  for_each_instruction_set([] {
    constexpr std::int64_t kPatches = 5;
    const std::vector<std::uint8_t> rgb = noise(48 * kPatches);
    const PatchStrides strides = {.from_even = 1008, .from_odd = 3024, .channel = 208};
    std::vector<std::uint8_t> out(10000, 77), expected = out;
    write_patch_row(rgb.data(), kPatches, strides, out.data());
    const std::int64_t at[kPatches] = {0, 1008, 4032, 5040, 8064};
    for (std::int64_t patch = 0; patch < kPatches; ++patch)
      for (std::int64_t channel = 0; channel < 3; ++channel)
        for (std::int64_t x = 0; x < 16; ++x)
          expected[static_cast<std::size_t>(at[patch] + channel * 208 + x)] =
              rgb[static_cast<std::size_t>(3 * (16 * patch + x) + channel)];
    CHECK(out == expected);
  });
}

}  // namespace
}  // namespace treble
