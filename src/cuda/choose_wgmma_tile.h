#pragma once

#include <cstdint>

namespace treble::cuda {

/// Tiles that linear_wgmma_sm90.cu is built for, as rows of the weight x tokens. Those from k384x128 on are for no more
/// tokens than they have.
enum class WgmmaTile {
  k256x192,
  k256x160,
  k256x128,
  k192x152,
  k128x256,
  k384x128,
  k192x128,
  k128x128,
  k320x64,
  k192x64,
  k128x64,
  k64x64,
};
constexpr int kNumWgmmaTiles = 12;

struct WgmmaTileShape {
  int weight_rows, num_tokens;
  bool shares_weight;  ///< two blocks work on neighbours along the tokens; else along the weight
};
WgmmaTileShape shape_of(WgmmaTile tile);

/// The tile with which the device is estimated to be done first. Two blocks at a time, on two multiprocessors, take two
/// tiles of tokens; so the time is how often all pairs of multiprocessors have to be filled, times that of a tile.
/// Where the tokens are one tile, two blocks take two tiles of the weight, and the time may be that of reading it.
/// @param weight_rows  of all matrices together: twice out_features for SwiGLU
WgmmaTile choose_wgmma_tile(std::int64_t num_tokens, std::int64_t weight_rows, int num_sms);

/// What is multiplied for the result, as a share of what the device could multiply in the time of the chosen tiles, by
/// the same estimate for tiles that share the weight; at most about 0.9.
double wgmma_efficiency(std::int64_t num_tokens, std::int64_t weight_rows, int num_sms);

}  // namespace treble::cuda
