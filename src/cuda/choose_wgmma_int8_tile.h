#pragma once

#include <cstdint>

namespace treble::cuda {

/// Tiles that linear_int8_wgmma_sm90.cu is built for, as rows of the weight x tokens. Those from k384x128
/// on are for no more tokens than they have.
enum class WgmmaInt8Tile {
  k256x192,
  k256x160,
  k256x128,
  k192x160,
  k128x256,
  k128x192,
  k128x160,
  k128x128,
  k128x96,
  k128x64,
  k64x64,
  k384x128,
  k192x128,
  k320x64,
  k192x64,
};
constexpr int kNumWgmmaInt8Tiles = 15;

struct WgmmaInt8TileShape {
  int weight_rows, num_tokens;
  bool shares_weight;  ///< two blocks work on neighbours along the tokens; else along the weight
};
WgmmaInt8TileShape shape_of(WgmmaInt8Tile tile);

/// The tile with which the device is estimated to be done first.
/// @param weight_rows  of all matrices together: twice out_features for SwiGLU
WgmmaInt8Tile choose_wgmma_int8_tile(std::int64_t num_tokens, std::int64_t weight_rows, std::int64_t in_features,
                                     int num_sms);

}  // namespace treble::cuda
