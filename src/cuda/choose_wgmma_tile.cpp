#include "cuda/choose_wgmma_tile.h"

#include <algorithm>
#include <array>
#include <optional>

#include "cuda/few_tokens_cost.h"

namespace treble::cuda {
namespace {

// By WgmmaTile. The largest first: it wins where two take the same time.
constexpr std::array<WgmmaTileShape, kNumWgmmaTiles> kShapes = {{{256, 192, true},
                                                                 {256, 160, true},
                                                                 {256, 128, true},
                                                                 {192, 152, true},
                                                                 {128, 256, true},
                                                                 {384, 128, false},
                                                                 {192, 128, false},
                                                                 {128, 128, false},
                                                                 {320, 64, false},
                                                                 {192, 64, false},
                                                                 {128, 64, false},
                                                                 {64, 64, false}}};
constexpr std::int64_t kFewTokens = 128;  // that are one tile

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

std::int64_t pairs_of(int num_sms) {
  return std::max(1, num_sms / 2);
}

/// Multiplications that one multiprocessor could do in the time.
std::int64_t cost_of(WgmmaTile tile, std::int64_t num_tokens, std::int64_t weight_rows, int num_sms) {
  // What a tile reads costs time beside what it multiplies: this many multiplications for a row of either operand.
  constexpr std::int64_t kRowCost = 12;
  // Three warpgroups in a block get fewer registers and shorter products: measured 7 to 13 % more than the rest says.
  const std::int64_t percent = tile == WgmmaTile::k192x152 ? 108 : 100;
  const auto [rows, tokens, shares_weight] = shape_of(tile);
  const std::int64_t pairs_of_tiles = divide_up(weight_rows, rows) * divide_up(num_tokens, 2 * tokens);
  return divide_up(pairs_of_tiles, pairs_of(num_sms)) * (rows * tokens + kRowCost * (rows + tokens)) * percent / 100;
}

template <typename Cost>
WgmmaTile cheapest_tile(bool shares_weight, const Cost& cost) {
  std::optional<WgmmaTile> best;
  for (int i = 0; i < kNumWgmmaTiles; ++i) {
    const auto tile = static_cast<WgmmaTile>(i);
    if (shape_of(tile).shares_weight == shares_weight && (!best || cost(tile) < cost(*best))) best = tile;
  }
  return *best;
}

WgmmaTile choose_tile_of_many_tokens(std::int64_t num_tokens, std::int64_t weight_rows, int num_sms) {
  return cheapest_tile(true, [&](WgmmaTile tile) { return cost_of(tile, num_tokens, weight_rows, num_sms); });
}

}  // namespace

WgmmaTileShape shape_of(WgmmaTile tile) {
  return kShapes[static_cast<std::size_t>(tile)];
}

WgmmaTile choose_wgmma_tile(std::int64_t num_tokens, std::int64_t weight_rows, int num_sms) {
  if (num_tokens > kFewTokens) return choose_tile_of_many_tokens(num_tokens, weight_rows, num_sms);
  return cheapest_tile(false, [&](WgmmaTile tile) {
    const auto [rows, tokens, shares_weight] = shape_of(tile);
    return few_tokens_cost({rows, tokens, 2}, num_tokens, weight_rows, num_sms);
  });
}

double wgmma_efficiency(std::int64_t num_tokens, std::int64_t weight_rows, int num_sms) {
  const WgmmaTile tile = choose_tile_of_many_tokens(num_tokens, weight_rows, num_sms);
  const std::int64_t possible = 2 * pairs_of(num_sms) * cost_of(tile, num_tokens, weight_rows, num_sms);
  return static_cast<double>(num_tokens * weight_rows) / static_cast<double>(std::max<std::int64_t>(1, possible));
}

}  // namespace treble::cuda
