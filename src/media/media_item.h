#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "media/uninitialised_allocator.h"

namespace treble {

enum class MediaKind { kImage, kVideo };

/// 8-bit levels that are written once: resize() leaves new elements as the system gave them.
using PixelLevels = std::vector<std::uint8_t, UninitialisedAllocator<std::uint8_t>>;

/// One image or clip as the vision tower reads it, but for the normalisation: a pixel value is (level - mean) /
/// deviation of its channel, in fp32. The tower computes it where it reads the patch, since the values of a large image
/// are eight times the size of its levels.
/// Row of patch (row, column) of temporal patch t: ((t * grid_h/2 + row/2) * grid_w/2 + column/2) * 4 + row%2 * 2 +
/// column%2, so that four rows in turn make one token. Column of a level: ((channel * F + frame) * 16 + y) * 16 + x,
/// where F is frames_per_patch().
struct MediaItem {
  MediaKind kind = MediaKind::kImage;
  std::int64_t grid_t = 1;      ///< temporal patches, of two frames each; 1 for an image
  std::int64_t grid_h = 0;      ///< patch rows, even
  std::int64_t grid_w = 0;      ///< patch columns, even
  PixelLevels levels;           ///< [grid_t * grid_h * grid_w, 768 * frames_per_patch()]
  std::array<float, 3> mean{};  ///< of the channels, in levels
  std::array<float, 3> deviation{};
  std::vector<double> timestamps;  ///< [grid_t] seconds of each temporal patch; videos only
  /// Of content, configuration and options: equal ones mean equal items. MediaReader sets it; empty: unknown.
  std::string digest;

  /// Frames that `levels` holds of a temporal patch: an image's one frame stands for both.
  std::int64_t frames_per_patch() const { return kind == MediaKind::kImage ? 1 : 2; }
  /// Tokens of one temporal patch: four patches make one.
  std::int64_t tokens_per_group() const { return grid_h * grid_w / 4; }
  std::int64_t num_tokens() const { return grid_t * tokens_per_group(); }
};

}  // namespace treble
