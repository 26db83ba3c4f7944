#include "media/sample_frames.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace treble {
namespace {

constexpr std::int64_t kMostFrames = 1 << 20;

/// total / source_fps * fps without its fraction, between the configuration's two counts.
std::int64_t frames_at_rate(std::int64_t total, double source_fps, double fps, const MediaProcessorConfig& config) {
  const double exact = static_cast<double>(total) / source_fps * fps;
  const auto count = static_cast<std::int64_t>(std::min(exact, static_cast<double>(kMostFrames)));
  return std::min({std::max(count, config.min_frames), config.max_frames, total});
}

void check_rate(double fps, const char* name) {
  if (is_frame_rate(fps)) return;
  throw Error(ErrorCode::kRequest, fmt::format("media: {} is {}, expected a number from {} to {} frames a second", name,
                                               fps, kLeastRate, kMostRate));
}

}  // namespace

std::vector<std::int64_t> sampled_frames(std::int64_t total, double source_fps, const MediaProcessorConfig& config,
                                         const VideoOptions& options) {
  if (total < 1) throw Error(ErrorCode::kRequest, "media: a clip has no frames; send one that has");
  check_rate(source_fps, "a clip's frame rate");
  if (options.fps) check_rate(*options.fps, "fps");
  if (!options.do_sample_frames.value_or(config.do_sample_frames)) {
    if (options.fps || options.num_frames) {
      throw Error(
          ErrorCode::kRequest,
          fmt::format("media: {} is given where every frame is kept (do_sample_frames is false{}); leave one out",
                      options.fps ? "fps" : "num_frames",
                      options.do_sample_frames ? "" : " in the release's configuration"));
    }
    std::vector<std::int64_t> all(static_cast<std::size_t>(total));
    std::iota(all.begin(), all.end(), std::int64_t{0});
    return all;
  }
  if (options.fps && options.num_frames)
    throw Error(ErrorCode::kRequest,
                "media: fps and num_frames are both given, and each says how many frames are kept; "
                "leave one out");
  if (options.num_frames && (*options.num_frames < 1 || *options.num_frames > kMostFrames)) {
    throw Error(ErrorCode::kRequest, fmt::format("media: num_frames is {}, expected an integer from 1 to {}",
                                                 *options.num_frames, kMostFrames));
  }
  const std::int64_t count = options.num_frames
                                 ? *options.num_frames
                                 : frames_at_rate(total, source_fps, options.fps.value_or(config.fps), config);
  // numpy.linspace(0, total - 1, count).round(): the last is exact, ties go to the even one.
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count), 0);
  const double step = count > 1 ? static_cast<double>(total - 1) / static_cast<double>(count - 1) : 0;
  for (std::size_t i = 0; i < indices.size(); ++i)
    indices[i] = static_cast<std::int64_t>(std::nearbyint(static_cast<double>(i) * step));
  if (count > 1) indices.back() = total - 1;
  return indices;
}

std::vector<double> patch_timestamps(const std::vector<std::int64_t>& indices, double source_fps) {
  std::vector<double> seconds;
  for (std::size_t i = 0; i < indices.size(); i += kTemporalPatchSize) {
    const auto first = static_cast<double>(indices[i]);
    const auto second = static_cast<double>(indices[std::min(i + 1, indices.size() - 1)]);
    seconds.push_back((first / source_fps + second / source_fps) / 2);
  }
  return seconds;
}

}  // namespace treble
