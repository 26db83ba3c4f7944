#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace treble {

/// One image or clip as the vision tower reads it. Pixels and digest are borrowed.
struct VisionItem {
  std::int64_t grid_t, grid_h, grid_w;  // temporal patches; rows and columns of patches, both even
  std::span<const float> pixel_values;  // [num_patches, kPatchFeatures], in merge-block order (model/vision.cpp)
  std::string_view digest;              // equal items have equal ones; empty: unknown

  std::int64_t num_patches() const { return grid_t * grid_h * grid_w; }
  std::int64_t num_features() const { return num_patches() / 4; }  // rows of the tower's output
};

}  // namespace treble
