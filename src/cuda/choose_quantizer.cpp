#include "cuda/choose_quantizer.h"

namespace treble::cuda {
namespace {

constexpr int kHalfWarps = kQuantizerThreads / 16;
constexpr int kMostGroups = 4;  // of a half warp: 64 registers of values
constexpr std::int64_t kGroup = 256;

}  // namespace

Quantizer choose_quantizer(const QuantizerShape& shape) {
  const bool fits = shape.is_aligned && shape.rotation_group == kGroup && shape.width > 0 &&
                    shape.width % kGroup == 0 && shape.width <= kMostGroups * kHalfWarps * kGroup;
  return fits ? Quantizer::kGroup256 : Quantizer::kAnyGroup;
}

int groups_of_half_warp(std::int64_t num_groups) {
  return num_groups <= kHalfWarps ? 1 : num_groups <= 2 * (kTwoGroupThreads / 16) ? 2 : kMostGroups;
}

}  // namespace treble::cuda
