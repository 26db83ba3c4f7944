#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "media/media_limits.h"

namespace treble {

// What a video file's own structure says, read before libavformat is asked: that passes over what is damaged in
// silence, and the rest of the file would be answered as a shorter clip. Each function walks the whole file.

/// Matroska and WebM: every element lies inside its parent and the file, only elements of the format stand where frames
/// do, checksums (CRC-32) hold, and frames belong to a track. A segment or cluster of unknown size, as a streaming
/// muxer writes it, may end behind any whole element.
/// @return frames of the only video track; nullopt if there are several
/// @throws Error kRequest: damaged, with the place
std::optional<std::int64_t> check_matroska(std::span<const std::byte> file);

/// MP4 and MOV: the boxes with the index and the frames lie inside the file. In a fragmented file every box does, and
/// every fragment's index holds together.
/// @throws Error kRequest: damaged, with the place
void check_mp4(std::span<const std::byte> file);

/// GIF: all of its pictures have all of their pixels, and the file ends with a trailer.
/// @return its pictures, no more than one beyond the limit
/// @throws Error kRequest: damaged, or a picture beyond the limits
std::int64_t check_gif(std::span<const std::byte> file, const MediaLimits& limits);

/// @throws Error kRequest that a video file is damaged: at this byte, this
[[noreturn]] void fail_damaged_at(std::size_t byte, const char* what);

}  // namespace treble
