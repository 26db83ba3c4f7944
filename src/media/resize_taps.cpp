#include "media/resize_taps.h"

#include <algorithm>
#include <cmath>

namespace treble {
namespace {

constexpr int kMostBits = 22;
constexpr std::int64_t kTapLimit = std::int64_t{1} << 15;
constexpr double kSupport = 2;  // of the kernel, in pixels of the coarser side

void add_blocks(ResizeTaps& taps, std::int64_t most_taps) {
  constexpr std::int64_t kBlock = ResizeTaps::kBlock;
  const std::int64_t num_blocks = std::ssize(taps.first) / kBlock;
  taps.num_pairs = (most_taps + 1) / 2;
  taps.block_taps.resize(static_cast<std::size_t>(num_blocks * taps.num_pairs * kBlock * 2));
  std::int16_t* next = taps.block_taps.data();
  for (std::int64_t block = 0; block < num_blocks; ++block) {
    const std::int32_t* first = taps.first.data() + block * kBlock;
    bool is_run = true;
    for (std::int64_t i = 0; i < kBlock; ++i) is_run = is_run && first[i] == first[0] + i;
    taps.is_run.push_back(is_run);
    for (std::int64_t pair = 0; pair < taps.num_pairs; ++pair)
      for (std::int64_t i = 0; i < kBlock; ++i, next += 2) std::copy_n(taps.of(block * kBlock + i) + 2 * pair, 2, next);
  }
}

double bicubic(double t) {
  t = std::abs(t);
  if (t < 1) return (1.5 * t - 2.5) * t * t + 1;
  if (t < 2) return -0.5 * (((t - 5) * t + 8) * t - 4);
  return 0;
}

}  // namespace

// All in double and in this order of operations: a tap that rounds the other way changes pixels.
ResizeTaps make_resize_taps(std::int64_t size_in, std::int64_t size_out) {
  const double scale = static_cast<double>(size_in) / static_cast<double>(size_out);
  const double stretch = std::max(scale, 1.0), support = kSupport * stretch;
  const auto outputs = static_cast<std::size_t>(size_out);

  ResizeTaps result;
  result.first.resize(outputs);
  result.count.resize(outputs);
  std::int64_t most_taps = 0;
  const auto center_of = [scale](std::size_t output) { return (static_cast<double>(output) + 0.5) * scale; };
  for (std::size_t o = 0; o < outputs; ++o) {
    const double center = center_of(o);
    const std::int64_t first = std::max<std::int64_t>(static_cast<std::int64_t>(center - support + 0.5), 0);
    const std::int64_t last = std::min(static_cast<std::int64_t>(center + support + 0.5), size_in);
    result.first[o] = static_cast<std::int32_t>(first);
    result.count[o] = static_cast<std::int32_t>(last - first);
    most_taps = std::max(most_taps, last - first);
  }
  result.num_taps = (most_taps + 7) / 8 * 8;

  // Two rounds, since one number of bits serves all outputs: the largest weight first, then the taps.
  std::vector<double> weights(static_cast<std::size_t>(most_taps));
  const auto make_weights = [&](std::size_t o) {
    const double center = center_of(o);
    double total = 0;
    const auto count = static_cast<std::size_t>(result.count[o]);
    for (std::size_t i = 0; i < count; ++i) {
      const auto input = static_cast<double>(result.first[o] + static_cast<std::int64_t>(i));
      weights[i] = bicubic((input - center + 0.5) * (1 / stretch));
      total += weights[i];
    }
    for (std::size_t i = 0; i < count; ++i) weights[i] /= total;
    return count;
  };
  double largest = 0;
  for (std::size_t o = 0; o < outputs; ++o) {
    const std::size_t count = make_weights(o);
    for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, weights[i]);
  }
  const auto fits = [largest](int bits) {
    return static_cast<std::int64_t>(0.5 + largest * static_cast<double>(std::int64_t{1} << bits)) < kTapLimit;
  };
  while (result.fraction_bits < kMostBits && fits(result.fraction_bits + 1)) ++result.fraction_bits;

  const auto one = static_cast<double>(std::int64_t{1} << result.fraction_bits);
  result.taps.resize(outputs * static_cast<std::size_t>(result.num_taps));
  for (std::size_t o = 0; o < outputs; ++o) {
    const std::size_t count = make_weights(o);
    std::int16_t* taps = result.taps.data() + o * static_cast<std::size_t>(result.num_taps);
    for (std::size_t i = 0; i < count; ++i)
      taps[i] = static_cast<std::int16_t>(std::trunc(weights[i] * one + std::copysign(0.5, weights[i])));
  }
  add_blocks(result, most_taps);
  return result;
}

}  // namespace treble
