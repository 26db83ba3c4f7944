#pragma once

#include <cstddef>
#include <cstdint>

namespace treble {

/// Upper bounds on media, checked before memory is taken for what they bound.
struct MediaLimits {
  std::int64_t max_pixels = std::int64_t{16} << 20;           ///< of one picture or frame: 16 megapixels
  std::size_t max_image_bytes = std::size_t{16} << 20;        ///< of one picture's file: 16 MiB
  std::size_t max_video_bytes = std::size_t{256} << 20;       ///< of one clip's file, or of all its pictures: 256 MiB
  std::int64_t max_frames = 100000;                           ///< of one clip, before sampling
  std::int64_t max_prepared_pixels = std::int64_t{32} << 20;  ///< of one item after resizing, all frames: 32 megapixels
  /// Of one item that a request's options make larger than 4 times what it brings, all frames: 1 megapixel.
  std::int64_t max_enlarged_pixels = std::int64_t{1} << 20;
  std::size_t max_items = 64;  ///< images, and videos, of one request
};

}  // namespace treble
