#include "cuda/choose_wgmma_nf4_tile.h"

#include <algorithm>
#include <array>

namespace treble::cuda {
namespace {

// The largest first: it wins where two take the same time.
constexpr std::array kTiles = {WgmmaNf4Tile::k256x160, WgmmaNf4Tile::k128x256, WgmmaNf4Tile::k256x128,
                               WgmmaNf4Tile::k128x192, WgmmaNf4Tile::k128x152, WgmmaNf4Tile::k128x104,
                               WgmmaNf4Tile::k128x64};
static_assert(kTiles.size() == kNumWgmmaNf4Tiles);

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// Cycles of a multiprocessor for a stage of 64 features: the longer of multiplying and decoding.
std::int64_t stage_cycles(WgmmaNf4TileShape tile) {
  constexpr std::int64_t kMultiplications = 2048 / 64;  // a cycle, of a stage's 64 features
  // Decoding a row's 64 weights: 3.2 instructions each at 64 a cycle, and barriers.
  constexpr std::int64_t kRowTenths = 32, kBarriers = 60;
  const std::int64_t multiplying = tile.rows * tile.tokens / kMultiplications;
  const std::int64_t decoding = tile.rows * kRowTenths / 10 + kBarriers;
  return std::max(multiplying, decoding) + std::min(multiplying, decoding) / 8;
}

std::int64_t cost_of(WgmmaNf4Tile tile, std::int64_t num_tokens, std::int64_t weight_rows, int num_sms) {
  const WgmmaNf4TileShape shape = shape_of(tile);
  const std::int64_t num_pairs = divide_up(weight_rows, 2 * shape.rows) * divide_up(num_tokens, shape.tokens);
  return divide_up(num_pairs, std::max(1, num_sms / 2)) * stage_cycles(shape);
}

}  // namespace

WgmmaNf4TileShape shape_of(WgmmaNf4Tile tile) {
  switch (tile) {
    case WgmmaNf4Tile::k256x160:
      return {256, 160};
    case WgmmaNf4Tile::k256x128:
      return {256, 128};
    case WgmmaNf4Tile::k128x256:
      return {128, 256};
    case WgmmaNf4Tile::k128x192:
      return {128, 192};
    case WgmmaNf4Tile::k128x152:
      return {128, 152};
    case WgmmaNf4Tile::k128x104:
      return {128, 104};
    case WgmmaNf4Tile::k128x64:
      return {128, 64};
  }
  return {256, 160};
}

WgmmaNf4Tile choose_wgmma_nf4_tile(std::int64_t num_tokens, std::int64_t weight_rows, int num_sms) {
  return *std::ranges::min_element(kTiles, {},
                                   [&](WgmmaNf4Tile tile) { return cost_of(tile, num_tokens, weight_rows, num_sms); });
}

}  // namespace treble::cuda
