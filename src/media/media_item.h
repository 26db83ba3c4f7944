#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "media/uninitialised_allocator.h"

namespace treble {

enum class MediaKind { kImage, kVideo };

/// fp32 values that are written once: resize() leaves new elements as the system gave them.
using PixelValues = std::vector<float, UninitialisedAllocator<float>>;

/// One image or clip as the vision tower reads it.
/// Row of patch (row, column) of temporal patch t: ((t * grid_h/2 + row/2) * grid_w/2 + column/2) * 4 + row%2 * 2 +
/// column%2, so that four rows in turn make one token. Column of a value: ((channel * 2 + frame) * 16 + y) * 16 + x.
struct MediaItem {
  MediaKind kind = MediaKind::kImage;
  std::int64_t grid_t = 1;         ///< temporal patches, of two frames each; 1 for an image
  std::int64_t grid_h = 0;         ///< patch rows, even
  std::int64_t grid_w = 0;         ///< patch columns, even
  PixelValues pixel_values;        ///< [grid_t * grid_h * grid_w, 1536] normalised; an image's frames are equal
  std::vector<double> timestamps;  ///< [grid_t] seconds of each temporal patch; videos only
  std::string digest;              ///< of content, configuration and options: equal ones mean equal items

  /// Tokens of one temporal patch: four patches make one.
  std::int64_t tokens_per_group() const { return grid_h * grid_w / 4; }
  std::int64_t num_tokens() const { return grid_t * tokens_per_group(); }
};

}  // namespace treble
