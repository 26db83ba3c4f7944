#include "cuda/choose_wgmma_tile.h"

#include <algorithm>

namespace treble::cuda {
namespace {

// The largest first: it wins where two take the same time.
constexpr WgmmaTile kTiles[] = {WgmmaTile::k256x192, WgmmaTile::k256x160, WgmmaTile::k256x128, WgmmaTile::k128x256,
                                WgmmaTile::k192x152};

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
  const auto [rows, tokens] = shape_of(tile);
  const std::int64_t pairs_of_tiles = divide_up(weight_rows, rows) * divide_up(num_tokens, 2 * tokens);
  return divide_up(pairs_of_tiles, pairs_of(num_sms)) * (rows * tokens + kRowCost * (rows + tokens)) * percent / 100;
}

}  // namespace

WgmmaTileShape shape_of(WgmmaTile tile) {
  switch (tile) {
    case WgmmaTile::k256x192:
      return {256, 192};
    case WgmmaTile::k256x160:
      return {256, 160};
    case WgmmaTile::k256x128:
      return {256, 128};
    case WgmmaTile::k192x152:
      return {192, 152};
    case WgmmaTile::k128x256:
      return {128, 256};
  }
  return {256, 192};
}

WgmmaTile choose_wgmma_tile(std::int64_t num_tokens, std::int64_t weight_rows, int num_sms) {
  WgmmaTile best = kTiles[0];
  for (const WgmmaTile tile : kTiles) {
    if (cost_of(tile, num_tokens, weight_rows, num_sms) < cost_of(best, num_tokens, weight_rows, num_sms)) best = tile;
  }
  return best;
}

double wgmma_efficiency(std::int64_t num_tokens, std::int64_t weight_rows, int num_sms) {
  const WgmmaTile tile = choose_wgmma_tile(num_tokens, weight_rows, num_sms);
  const std::int64_t possible = 2 * pairs_of(num_sms) * cost_of(tile, num_tokens, weight_rows, num_sms);
  return static_cast<double>(num_tokens * weight_rows) / static_cast<double>(std::max<std::int64_t>(1, possible));
}

}  // namespace treble::cuda
