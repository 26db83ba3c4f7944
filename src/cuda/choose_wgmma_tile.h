#pragma once

#include <cstdint>

namespace treble::cuda {

/// Tiles that linear_wgmma_sm90.cu is built for, as rows of the weight x tokens.
enum class WgmmaTile { k256x192, k256x160, k256x128, k192x152, k128x256 };
constexpr int kNumWgmmaTiles = 5;

struct WgmmaTileShape {
  int weight_rows, num_tokens;
};
WgmmaTileShape shape_of(WgmmaTile tile);

/// The tile with which the device is done first. Two blocks at a time, on two multiprocessors, take two tiles of
/// tokens; so the time is how often all pairs of multiprocessors have to be filled, times that of a tile.
/// @param weight_rows  of all matrices together: twice out_features for SwiGLU
WgmmaTile choose_wgmma_tile(std::int64_t num_tokens, std::int64_t weight_rows, int num_sms);

/// What is multiplied for the result, as a share of what the device could multiply in the time of the chosen tiles, by
/// the same estimate; at most about 0.9.
double wgmma_efficiency(std::int64_t num_tokens, std::int64_t weight_rows, int num_sms);

}  // namespace treble::cuda
