#include "cuda/choose_wgmma_int8_tile.h"

#include <algorithm>
#include <array>
#include <limits>

#include "cuda/few_tokens_cost.h"

namespace treble::cuda {
namespace {

// By WgmmaInt8Tile. The largest first: it wins where two take the same time.
constexpr std::array<WgmmaInt8TileShape, kNumWgmmaInt8Tiles> kShapes = {{{256, 192, true},
                                                                         {256, 160, true},
                                                                         {256, 128, true},
                                                                         {192, 160, true},
                                                                         {128, 256, false},
                                                                         {128, 192, false},
                                                                         {128, 160, true},
                                                                         {128, 128, false},
                                                                         {128, 96, false},
                                                                         {128, 64, false},
                                                                         {64, 64, false},
                                                                         {384, 128, false},
                                                                         {192, 128, false},
                                                                         {320, 64, false},
                                                                         {192, 64, false}}};
constexpr std::int64_t kFewTokens = 128;  // that are one tile
constexpr int kNumTilesOfMany = 11;       // the others are for few

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// Clock cycles of a multiprocessor, of products of more than few tokens. Fitted to what every tile took on an H200 for
/// the shapes of the 27B at 64, 304, 1,504, 2,272 and 24,064 tokens: choosing by it costs 0.5 % more than the best tile
/// of each.
std::int64_t cost_of(const WgmmaInt8TileShape& tile, std::int64_t num_tokens, std::int64_t weight_rows,
                     std::int64_t in_features, int num_sms) {
  constexpr std::int64_t kProductsPerCycle = 4096;  // of int8 on the tensor cores
  constexpr std::int64_t kBytesPerCycle = 28;       // from the L2 cache, for each multiprocessor when all of them read
  constexpr std::int64_t kStart = 2000;             // until the first stage is there, and for the last store
  constexpr std::int64_t kRoundedPerCycle = 32;     // sums in an epilogue; half of it overlaps with products
  const std::int64_t rows = tile.weight_rows, tokens = tile.num_tokens;
  const std::int64_t token_tiles = divide_up(num_tokens, tokens * (tile.shares_weight ? 2 : 1));
  const std::int64_t feature_tiles = divide_up(weight_rows, rows * (tile.shares_weight ? 1 : 2));
  const std::int64_t pairs = token_tiles * feature_tiles, clusters = std::max(1, num_sms / 2);
  const std::int64_t rounds = divide_up(pairs, clusters);
  const std::int64_t bytes = tile.shares_weight ? rows / 2 + tokens : rows + tokens / 2;
  // A product of n tokens reads its 64 weight rows for each of them: a tenth more for 128 tokens than for 256.
  const std::int64_t multiplying = in_features * rows * (9 * tokens + 256) / (10 * kProductsPerCycle);
  const std::int64_t copying = in_features * bytes / kBytesPerCycle;
  return std::max(rounds * multiplying, pairs * copying / clusters) + rounds * rows * tokens / kRoundedPerCycle +
         kStart;
}

}  // namespace

WgmmaInt8TileShape shape_of(WgmmaInt8Tile tile) {
  return kShapes[static_cast<std::size_t>(tile)];
}

WgmmaInt8Tile choose_wgmma_int8_tile(std::int64_t num_tokens, std::int64_t weight_rows, std::int64_t in_features,
                                     int num_sms) {
  const auto cheapest = [&](int num_tiles, const auto& cost) {
    const auto best = std::min_element(kShapes.begin(), kShapes.begin() + num_tiles,
                                       [&](const auto& a, const auto& b) { return cost(a) < cost(b); });
    return static_cast<WgmmaInt8Tile>(best - kShapes.begin());
  };
  if (num_tokens > kFewTokens) {
    return cheapest(kNumTilesOfMany, [&](const WgmmaInt8TileShape& tile) {
      return cost_of(tile, num_tokens, weight_rows, in_features, num_sms);
    });
  }
  return cheapest(kNumWgmmaInt8Tiles, [&](const WgmmaInt8TileShape& tile) {
    return tile.shares_weight
               ? std::numeric_limits<double>::infinity()
               : few_tokens_cost({tile.weight_rows, tile.num_tokens, 1}, num_tokens, weight_rows, num_sms);
  });
}

}  // namespace treble::cuda
