#include "media/fitted_size.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace treble {
namespace {

constexpr double kFactor = kSizeFactor;

/// round(side / 32) * 32, ties to even: nearbyint in the default rounding mode is what Python's round() does.
double nearest(double side, double factor) {
  return std::nearbyint(side / factor) * factor;
}

/// Checks the sides that are fitted; the message names those that were sent.
void check_ratio(const PictureSize& fitted, const PictureSize& size, std::string_view what) {
  const auto height = static_cast<double>(fitted.height), width = static_cast<double>(fitted.width);
  if (std::max(height, width) / std::min(height, width) <= 200) return;
  throw Error(ErrorCode::kRequest,
              fmt::format("media: {} {} x {} pixels; one side may be at most 200 times the other; crop it", what,
                          size.width, size.height));
}

/// All in double, in the order of the reference: an area on the border of a limit must fall on the same side.
PictureSize fit(const PictureSize& size, double num_frames, double counted_frames, const MediaProcessorConfig& config) {
  const auto height = static_cast<double>(size.height), width = static_cast<double>(size.width);
  const auto least = static_cast<double>(config.min_pixels), most = static_cast<double>(config.max_pixels);
  const double area = num_frames * height * width;
  double fitted_height = nearest(height, kFactor), fitted_width = nearest(width, kFactor);
  const double fitted_area = counted_frames * fitted_height * fitted_width;
  if (fitted_area > most) {
    const double shrink = std::sqrt(area / most);
    fitted_height = std::max(kFactor, std::floor(height / shrink / kFactor) * kFactor);
    fitted_width = std::max(kFactor, std::floor(width / shrink / kFactor) * kFactor);
  } else if (fitted_area < least) {
    const double grow = std::sqrt(least / area);
    fitted_height = std::ceil(height * grow / kFactor) * kFactor;
    fitted_width = std::ceil(width * grow / kFactor) * kFactor;
  }
  return {static_cast<std::int64_t>(fitted_height), static_cast<std::int64_t>(fitted_width)};
}

}  // namespace

PictureSize fitted_image_size(const PictureSize& size, const MediaProcessorConfig& config) {
  check_ratio(size, size, "a picture is");
  return fit(size, 1, 1, config);
}

PictureSize fitted_frame_size(const PictureSize& size, std::int64_t num_frames, const MediaProcessorConfig& config) {
  if (num_frames < kTemporalPatchSize) {
    throw Error(ErrorCode::kRequest, fmt::format("media: a clip has {} frame; {} are the fewest; send it as an image",
                                                 num_frames, kTemporalPatchSize));
  }
  PictureSize grown = size;
  if (std::min(size.height, size.width) < kSizeFactor) {
    const double scale =
        std::max(kFactor / static_cast<double>(size.height), kFactor / static_cast<double>(size.width));
    grown.height = static_cast<std::int64_t>(static_cast<double>(size.height) * scale);
    grown.width = static_cast<std::int64_t>(static_cast<double>(size.width) * scale);
  }
  check_ratio(grown, size, "a clip's frames are");
  const auto frames = static_cast<double>(num_frames);
  return fit(grown, frames, nearest(frames, kTemporalPatchSize), config);
}

}  // namespace treble
