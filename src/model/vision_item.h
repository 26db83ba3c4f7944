#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace treble {

/// One image or clip as the vision tower reads it. Levels and digest are borrowed.
struct VisionItem {
  std::int64_t grid_t, grid_h, grid_w;  // temporal patches; rows and columns of patches, both even
  std::int64_t frames_per_patch;        // in `levels`: 2, or 1 that fills both
  // [num_patches, channel, frames_per_patch, kPatchSize, kPatchSize], in merge-block order (model/vision.cpp)
  std::span<const std::uint8_t> levels;
  std::array<float, 3> mean, deviation;  // a pixel value is (level - mean) / deviation of its channel
  std::string_view digest;               // equal items have equal ones; empty: unknown

  std::int64_t num_patches() const { return grid_t * grid_h * grid_w; }
  std::int64_t num_features() const { return num_patches() / 4; }  // rows of the tower's output
};

}  // namespace treble
