#include "media/prepare.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include "media/content_digest.h"
#include "media/patches.h"
#include "media/picture.h"
#include "media/video_file.h"

namespace treble {
namespace {

constexpr std::int64_t kMostPixels = std::int64_t{1} << 40;

/// The configuration with a request's own limits.
MediaProcessorConfig with_limits(MediaProcessorConfig config, std::optional<std::int64_t> min_pixels,
                                 std::optional<std::int64_t> max_pixels) {
  const auto check = [](std::string_view name, std::int64_t pixels) {
    if (pixels >= 1 && pixels <= kMostPixels) return;
    throw Error(ErrorCode::kRequest,
                fmt::format("media: {} is {}, expected an integer from 1 to {}", name, pixels, kMostPixels));
  };
  if (min_pixels) check("min_pixels", config.min_pixels = *min_pixels);
  if (max_pixels) check("max_pixels", config.max_pixels = *max_pixels);
  if (config.min_pixels > config.max_pixels) {
    throw Error(ErrorCode::kRequest,
                fmt::format("media: min_pixels is {}, more than max_pixels, which is {}; give both", config.min_pixels,
                            config.max_pixels));
  }
  return config;
}

/// The reference scales mean and deviation to levels, in fp32, instead of scaling the levels.
std::array<float, 3> in_levels(const std::array<double, 3>& values, const MediaProcessorConfig& config) {
  std::array<float, 3> scaled;
  const auto to_level = static_cast<float>(1 / config.rescale_factor);
  for (std::size_t channel = 0; channel < 3; ++channel)
    scaled[channel] = static_cast<float>(values[channel]) * to_level;
  return scaled;
}

/// An item whose levels are not set yet.
MediaItem make_item(MediaKind kind, std::int64_t grid_t, const PictureSize& size, const MediaProcessorConfig& config,
                    const MediaLimits& limits) {
  const std::int64_t frames = kind == MediaKind::kImage ? 1 : grid_t * kTemporalPatchSize;
  if (size.height > limits.max_prepared_pixels / size.width / frames) {
    throw Error(ErrorCode::kRequest,
                fmt::format("media: {} frame(s) would be resized to {} x {} pixels, the limit is {} pixels in all; "
                            "give a lower max_pixels or min_pixels, or fewer frames",
                            frames, size.width, size.height, limits.max_prepared_pixels));
  }
  MediaItem item{.kind = kind, .grid_t = grid_t, .grid_h = size.height / kPatchSize, .grid_w = size.width / kPatchSize};
  item.levels.resize(static_cast<std::size_t>(3 * frames * size.height * size.width));
  item.mean = in_levels(config.image_mean, config);
  item.deviation = in_levels(config.image_std, config);
  return item;
}

/// A few bytes cannot ask for the time of a large picture: what an item costs follows its pixels after resizing.
/// @param num_pixels  that the item brings: of its frames, each counted once
void check_enlarged(double num_pixels, std::int64_t num_frames, const PictureSize& fitted, const MediaLimits& limits) {
  constexpr double kMostGrowth = 4;
  const double enlarged =
      static_cast<double>(num_frames) * static_cast<double>(fitted.height) * static_cast<double>(fitted.width);
  if (enlarged <= static_cast<double>(limits.max_enlarged_pixels) || enlarged <= kMostGrowth * num_pixels) return;
  throw Error(
      ErrorCode::kRequest,
      fmt::format("media: {} frame(s) would be enlarged to {} x {} pixels, the limit is {} times their own pixels, "
                  "or {} in all; give a lower min_pixels or num_frames, or send larger ones",
                  num_frames, fitted.width, fitted.height, kMostGrowth, limits.max_enlarged_pixels));
}

/// Pixels of a frame, which has 32 a side at least once it is read.
double least_pixels(const PictureSize& size) {
  return static_cast<double>(std::max(size.height, kSizeFactor)) *
         static_cast<double>(std::max(size.width, kSizeFactor));
}

/// Writes the kept frames of a clip, one after the other, into an item.
class ClipWriter {
 public:
  /// @param count  frames that are kept, of `total`
  ClipWriter(std::size_t count, std::int64_t total, const MediaProcessorConfig& config, const VideoOptions& options,
             const MediaLimits& limits)
      : count_(static_cast<std::int64_t>(count)), total_(total), config_(config), options_(options), limits_(limits) {}

  void add(std::size_t place, const Picture& picture) {
    const PictureSize size = {picture.height, picture.width};
    const auto frame = static_cast<std::int64_t>(place);
    if (place == 0) {
      size_ = size;
      const PictureSize fitted = fitted_frame_size(size, count_, config_);
      if (options_.min_pixels || options_.num_frames)
        check_enlarged(static_cast<double>(std::min(count_, total_)) * least_pixels(size), count_, fitted, limits_);
      item_ = make_item(MediaKind::kVideo, (count_ + 1) / kTemporalPatchSize, fitted, config_, limits_);
    } else if (size != size_) {
      throw Error(ErrorCode::kRequest,
                  fmt::format("media: kept frame {} of a clip is {} x {} pixels, the first one {} x {}; send frames of "
                              "one size",
                              place, size.width, size.height, size_.width, size_.height));
    }
    write_frame(picture, frame, item_);
    // An odd number: the last frame fills the rest of its patch.
    if (frame + 1 == count_ && frame % 2 == 0) write_frame(picture, frame + 1, item_);
  }

  MediaItem take() { return std::move(item_); }

 private:
  std::int64_t count_, total_;
  const MediaProcessorConfig& config_;
  const VideoOptions& options_;
  const MediaLimits& limits_;
  PictureSize size_;
  MediaItem item_;
};

void add(ContentDigest& digest, const MediaProcessorConfig& config) {
  for (const std::int64_t number : {config.min_pixels, config.max_pixels, config.min_frames, config.max_frames})
    digest.add(static_cast<double>(number));
  for (const double number : {config.rescale_factor, config.fps, config.do_sample_frames ? 1.0 : 0.0})
    digest.add(number);
  for (const double number : config.image_mean) digest.add(number);
  for (const double number : config.image_std) digest.add(number);
}

void add(ContentDigest& digest, const VideoOptions& options) {
  const auto add_optional = [&digest](const auto& value) {
    digest.add(value ? static_cast<double>(*value) : std::numeric_limits<double>::infinity());
  };
  add_optional(options.fps);
  add_optional(options.num_frames);
  add_optional(options.do_sample_frames);
  add_optional(options.min_pixels);
  add_optional(options.max_pixels);
  add_optional(options.source_fps);
}

}  // namespace

std::string image_digest(FileBytes file, const MediaConfig& config, const ImageOptions& options) {
  ContentDigest digest;
  digest.add("image");
  add(digest, with_limits(config.image, options.min_pixels, options.max_pixels));
  digest.add(file);
  return digest.hex();
}

MediaItem prepare_image(FileBytes file, const MediaConfig& config, const MediaLimits& limits,
                        const ImageOptions& options) {
  const MediaProcessorConfig processor = with_limits(config.image, options.min_pixels, options.max_pixels);
  const Picture picture = decode_picture(file, limits);
  const PictureSize size = fitted_image_size({picture.height, picture.width}, processor);
  if (options.min_pixels) check_enlarged(least_pixels({picture.height, picture.width}), 1, size, limits);
  MediaItem item = make_item(MediaKind::kImage, 1, size, processor, limits);
  write_frame(picture, 0, item);
  return item;
}

std::string frames_digest(std::span<const FileBytes> frames, const MediaConfig& config, const VideoOptions& options) {
  ContentDigest digest;
  digest.add("frames");
  add(digest, config.video);
  add(digest, options);
  for (const FileBytes frame : frames) digest.add(frame);
  return digest.hex();
}

MediaItem prepare_frames(std::span<const FileBytes> frames, const MediaConfig& config, const MediaLimits& limits,
                         const VideoOptions& options) {
  const MediaProcessorConfig processor = with_limits(config.video, options.min_pixels, options.max_pixels);
  const auto total = static_cast<std::int64_t>(frames.size());
  if (total > limits.max_frames) {
    throw Error(ErrorCode::kRequest,
                fmt::format("media: a clip has {} frames, the limit is {}; send fewer", total, limits.max_frames));
  }
  std::size_t num_bytes = 0;
  for (const FileBytes frame : frames) num_bytes += frame.size();
  if (num_bytes > limits.max_video_bytes) {
    throw Error(ErrorCode::kRequest,
                fmt::format("media: the pictures of a clip have {} bytes, the limit is {}; send fewer", num_bytes,
                            limits.max_video_bytes));
  }
  const double fps = options.source_fps.value_or(kAssumedFps);
  const std::vector<std::int64_t> indices = sampled_frames(total, fps, processor, options);
  ClipWriter clip(indices.size(), total, processor, options, limits);
  for (std::size_t place = 0; place < indices.size(); ++place) {
    const auto index = static_cast<std::size_t>(indices[place]);
    Picture picture;
    try {
      picture = decode_picture(frames[index], limits);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{} (frame {} of a clip)", error.what(), index));
    }
    clip.add(place, picture);
  }
  MediaItem item = clip.take();
  item.timestamps = patch_timestamps(indices, fps);
  return item;
}

std::string video_digest(FileBytes file, const MediaConfig& config, const VideoOptions& options) {
  ContentDigest digest;
  digest.add("video");
  add(digest, config.video);
  add(digest, options);
  digest.add(file);
  return digest.hex();
}

MediaItem prepare_video(FileBytes file, const MediaConfig& config, const MediaLimits& limits,
                        const VideoOptions& options) {
  const MediaProcessorConfig processor = with_limits(config.video, options.min_pixels, options.max_pixels);
  VideoFile video(file, limits);
  const double fps = options.source_fps.value_or(video.fps());
  const std::vector<std::int64_t> indices = sampled_frames(video.num_frames(), fps, processor, options);
  ClipWriter clip(indices.size(), video.num_frames(), processor, options, limits);
  video.read(indices, [&clip](std::size_t place, const Picture& picture) { clip.add(place, picture); });
  MediaItem item = clip.take();
  item.timestamps = patch_timestamps(indices, fps);
  return item;
}

}  // namespace treble
