#include "media/resize_taps.h"

#include <doctest/doctest.h>

#include <cstdlib>

namespace treble {
namespace {

std::vector<int> taps_of(const ResizeTaps& taps, std::int64_t output) {
  const std::int16_t* begin = taps.of(output);
  return {begin, begin + taps.count[static_cast<std::size_t>(output)]};
}

// The values are torchvision's own, read off its results on unit impulses.
TEST_CASE("resize_taps: 8 pixels to 5, 4 to 2 and 5 to 8 have torchvision's taps") {
  const ResizeTaps smaller = make_resize_taps(8, 5);
  CHECK(smaller.fraction_bits == 15);
  CHECK(smaller.first == std::vector<std::int32_t>{0, 0, 1, 2, 4});
  CHECK(taps_of(smaller, 0) == std::vector<int>{20034, 14060, -597, -729});
  CHECK(taps_of(smaller, 1) == std::vector<int>{-1241, 9540, 19856, 6129, -1480, -37});
  CHECK(taps_of(smaller, 2) == std::vector<int>{-1121, 806, 16699, 16699, 806, -1121});
  CHECK(taps_of(smaller, 3) == std::vector<int>{-37, -1480, 6129, 19856, 9540, -1241});

  const ResizeTaps half = make_resize_taps(4, 2);
  CHECK(half.fraction_bits == 16);
  CHECK(taps_of(half, 0) == std::vector<int>{30060, 30060, 7853, -2437});

  const ResizeTaps larger = make_resize_taps(5, 8);
  CHECK(larger.fraction_bits == 14);
  CHECK(taps_of(larger, 0) == std::vector<int>{17563, -1179});
  CHECK(taps_of(larger, 1) == std::vector<int>{9916, 7293, -825});
  CHECK(taps_of(larger, 2) == std::vector<int>{-450, 16230, 634, -30});
  CHECK(taps_of(larger, 3) == std::vector<int>{-550, 5010, 13134, -1210});
}

TEST_CASE("resize_taps: no output reads past the inputs, and its sums fit 32 bits, whatever the two sizes") {
  for (const std::int64_t size_in : {1, 2, 3, 31, 32, 33, 1000, 65536, 524288}) {
    for (const std::int64_t size_out : {32, 64, 256, 4096}) {
      CAPTURE(size_in);
      CAPTURE(size_out);
      const ResizeTaps taps = make_resize_taps(size_in, size_out);
      CHECK(taps.num_taps % 8 == 0);
      std::int64_t problems = 0;
      for (std::int64_t o = 0; o < size_out; ++o) {
        const std::int64_t first = taps.first[static_cast<std::size_t>(o)];
        const std::int64_t count = taps.count[static_cast<std::size_t>(o)];
        std::int64_t magnitude = 0;
        for (std::int64_t i = 0; i < taps.num_taps; ++i) magnitude += std::abs(taps.of(o)[i]);
        problems += first < 0 || count < 1 || count > taps.num_taps || first + count > size_in;
        problems += o > 0 && first < taps.first[static_cast<std::size_t>(o - 1)];
        problems += 255 * magnitude + (std::int64_t{1} << taps.fraction_bits) > std::int64_t{0x7fffffff};
      }
      CHECK(problems == 0);
    }
  }
}

}  // namespace
}  // namespace treble
