#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "media/media_config.h"
#include "media/media_item.h"
#include "media/media_limits.h"
#include "media/sample_frames.h"

namespace treble {

using FileBytes = std::span<const std::byte>;

/// What a request may change in how its images are read.
struct ImageOptions {
  std::optional<std::int64_t> min_pixels;  ///< area after resizing
  std::optional<std::int64_t> max_pixels;
};

/// Decodes a PNG, JPEG, WebP or GIF file (picture.h says how) and resizes it to multiples of 32 pixels.
/// @return an item without a digest
/// @throws Error kRequest: a damaged file, one beyond the limits, sides of a ratio above 200, options out of range
MediaItem prepare_image(FileBytes file, const MediaConfig& config, const MediaLimits& limits,
                        const ImageOptions& options = {});

/// The same of a clip given as picture files, all of one size. Only the frames that are kept are decoded. Without
/// options.source_fps the pictures are taken for 24 a second and sampled down, as in the reference: 8 become 4.
/// @throws Error kRequest: as above, naming the frame; fewer than 2 frames kept; frames of different size
MediaItem prepare_frames(std::span<const FileBytes> frames, const MediaConfig& config, const MediaLimits& limits,
                         const VideoOptions& options = {});

/// The same of an MP4, MOV, WebM, Matroska or GIF file (video_file.h says how). Frames and their rate come from the
/// file, the rate from options.source_fps if it is given.
/// @throws Error kRequest: as above; libraries that are missing, with what to install
MediaItem prepare_video(FileBytes file, const MediaConfig& config, const MediaLimits& limits,
                        const VideoOptions& options = {});

// MediaItem::digest for what the functions above return, from the bytes alone: the key of a cache of their results.
std::string image_digest(FileBytes file, const MediaConfig& config, const ImageOptions& options = {});
std::string frames_digest(std::span<const FileBytes> frames, const MediaConfig& config,
                          const VideoOptions& options = {});
std::string video_digest(FileBytes file, const MediaConfig& config, const VideoOptions& options = {});

}  // namespace treble
