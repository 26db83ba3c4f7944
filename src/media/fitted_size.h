#pragma once

#include <cstdint>

#include "media/media_config.h"

namespace treble {

/// Sides of a picture, pixels.
struct PictureSize {
  std::int64_t height = 0;
  std::int64_t width = 0;
  bool operator==(const PictureSize&) const = default;
};

/// The size an image is resized to: multiples of 32 near its own, with an area between the configuration's two limits.
/// The aspect ratio may change a little, nothing is cropped.
/// @throws Error kRequest if one side is more than 200 times the other
PictureSize fitted_image_size(const PictureSize& size, const MediaProcessorConfig& config);

/// The size that every frame of a clip is resized to; the limits count the pixels of all its `num_frames` frames.
/// @throws Error kRequest if there are fewer than 2 frames, or one side is more than 200 times the other
PictureSize fitted_frame_size(const PictureSize& size, std::int64_t num_frames, const MediaProcessorConfig& config);

}  // namespace treble
