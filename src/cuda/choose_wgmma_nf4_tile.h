#pragma once

#include <cstdint>

namespace treble::cuda {

/// Weight rows x tokens of a tile of linear_nf4_wgmma_sm90.
enum class WgmmaNf4Tile { k256x160, k256x128, k128x256, k128x192, k128x152, k128x104, k128x64 };
inline constexpr int kNumWgmmaNf4Tiles = 7;

struct WgmmaNf4TileShape {
  std::int64_t rows, tokens;
};
WgmmaNf4TileShape shape_of(WgmmaNf4Tile tile);

/// The tile that takes the least time by an estimate.
/// @param weight_rows  of both weights for SwiGLU
WgmmaNf4Tile choose_wgmma_nf4_tile(std::int64_t num_tokens, std::int64_t weight_rows, int num_sms);

}  // namespace treble::cuda
