#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "media/media_config.h"

namespace treble {

/// What a request may change in how its clips are read; the reference's processor arguments of these names.
struct VideoOptions {
  std::optional<double> fps;               ///< frames a second that are kept; excludes num_frames
  std::optional<std::int64_t> num_frames;  ///< frames that are kept, evenly spaced, whatever the rate
  std::optional<bool> do_sample_frames;    ///< false: every frame is kept; excludes fps and num_frames
  std::optional<std::int64_t> min_pixels;  ///< of all kept frames together, after resizing
  std::optional<std::int64_t> max_pixels;  ///< alike
  std::optional<double> source_fps;        ///< the clip's own rate; pictures are taken for 24, files know theirs
};

/// The rates that are taken, frames a second: one frame in eleven days to a million. Beyond them, timestamps overflow.
constexpr double kLeastRate = 1e-6, kMostRate = 1e6;
constexpr bool is_frame_rate(double fps) {
  return fps >= kLeastRate && fps <= kMostRate;
}

/// The rate of a clip that comes without one.
constexpr double kAssumedFps = 24;

/// Indices of the frames that are kept of a clip of `total` frames, ascending; num_frames may repeat some.
/// @throws Error kRequest if total is not positive, an option is out of range, fps and num_frames are both given, or
///         one of them where all frames are kept
std::vector<std::int64_t> sampled_frames(std::int64_t total, double source_fps, const MediaProcessorConfig& config,
                                         const VideoOptions& options);

/// Seconds of each temporal patch: the mean of its two frames'. The last frame is repeated if their number is odd.
std::vector<double> patch_timestamps(const std::vector<std::int64_t>& indices, double source_fps);

}  // namespace treble
