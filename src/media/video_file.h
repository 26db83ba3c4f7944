#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "media/media_limits.h"
#include "media/picture.h"

namespace treble {

/// An MP4, MOV, Matroska, WebM or GIF file in memory, read through FFmpeg's libraries (libav.h). Nothing else is ever
/// opened: no other files that it may name, no network. Rotation and the pixels' aspect ratio are ignored.
class VideoFile {
 public:
  /// Reads the container, decodes nothing. The bytes must outlive this.
  /// @throws Error kRequest: no such format, damaged, no video stream, beyond the limits, a codec that is not read,
  ///         libraries that are missing
  VideoFile(std::span<const std::byte> file, const MediaLimits& limits);
  ~VideoFile();
  VideoFile(const VideoFile&) = delete;
  VideoFile& operator=(const VideoFile&) = delete;

  std::int64_t num_frames() const;
  double fps() const;  ///< frames over the time they take, a second

  /// Decodes the frames of these indices, in display order from 0, ascending, and hands each to `sink` with its place
  /// in the list. Between two of them, decoding goes on or starts anew at a key frame, whichever is less work.
  /// @throws Error kRequest if a frame on the way is damaged, or one has another size than the first
  void read(std::span<const std::int64_t> indices, const std::function<void(std::size_t, const Picture&)>& sink);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace treble
