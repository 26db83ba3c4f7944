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
  // What a tile reads costs time beside what it multiplies: this many multiplications for a row of either operand.
  constexpr std::int64_t kRowCost = 12;
  const std::int64_t num_pairs = std::max(1, num_sms / 2);
  WgmmaTile best = kTiles[0];
  std::int64_t best_cost = 0;
  for (const WgmmaTile tile : kTiles) {
    const auto [rows, tokens] = shape_of(tile);
    const std::int64_t pairs_of_tiles = divide_up(weight_rows, rows) * divide_up(num_tokens, 2 * tokens);
    const std::int64_t cost = divide_up(pairs_of_tiles, num_pairs) * (rows * tokens + kRowCost * (rows + tokens));
    if (best_cost == 0 || cost < best_cost) best = tile, best_cost = cost;
  }
  return best;
}

}  // namespace treble::cuda
