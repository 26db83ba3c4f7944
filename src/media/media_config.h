#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>

namespace treble {

/// How a release prepares images, or videos: one block of its processor configuration.
struct MediaProcessorConfig {
  std::int64_t min_pixels = 65536;     ///< size.shortest_edge: an area, despite its name; a video's counts all frames
  std::int64_t max_pixels = 16777216;  ///< size.longest_edge
  double rescale_factor = 1.0 / 255;
  std::array<double, 3> image_mean = {0.5, 0.5, 0.5};
  std::array<double, 3> image_std = {0.5, 0.5, 0.5};

  // Of videos only.
  bool do_sample_frames = true;
  double fps = 2;  ///< frames a second that are kept
  std::int64_t min_frames = 4;
  std::int64_t max_frames = 768;
};

struct MediaConfig {
  MediaProcessorConfig image;
  MediaProcessorConfig video = {.min_pixels = 4096, .max_pixels = 25165824};
  // Where the release should have had the block; empty if it has it, or nothing was read.
  std::string lacks_image;
  std::string lacks_video;
};

// What every release of the family has, and this code and MediaItem are written for.
constexpr std::int64_t kPatchSize = 16;
constexpr std::int64_t kTemporalPatchSize = 2;
constexpr std::int64_t kMergeSize = 2;
constexpr std::int64_t kSizeFactor = kPatchSize * kMergeSize;  ///< sides of a resized picture are multiples of it

/// Reads the blocks "image_processor" and "video_processor" of processor_config.json; a block it lacks comes from
/// preprocessor_config.json or video_preprocessor_config.json. The values above stand in for what a block lacks, as in
/// the reference, but not for a whole block: sizes differ from release to release. A release without any answers text.
/// @throws Error kCheckpoint naming the file and the key: not JSON, a key of the wrong type or range, a size without
///         its two limits, a value that is not implemented (patch_size other than 16, resample other than bicubic, ...)
MediaConfig read_media_config(const std::filesystem::path& folder);

/// @throws Error kCheckpoint naming the files, if the release does not say how it prepares images, or videos
void require_image_block(const MediaConfig& config);
void require_video_block(const MediaConfig& config);

}  // namespace treble
