#pragma once

#include <treble/json.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "media/media_limits.h"

namespace treble {

using FileContent = std::vector<std::byte>;

/// One image or clip as a request gives it: the bytes of a file, or of one file a frame.
struct MediaSource {
  std::vector<FileContent> files;
  bool is_frames = false;            ///< a clip given as pictures
  std::optional<double> frame_rate;  ///< of these pictures, in frames a second; nullopt: not said
};

/// Where a source may come from, and how large it may be.
struct MediaSourceRules {
  MediaLimits limits;
  std::optional<std::filesystem::path> folder;  ///< strings may be paths relative to it; nullopt: they may not
};

/// Reads an image: a string (data URL or base64; a path where the rules have a folder), or an object with "base64",
/// "data_base64" or "data" (base64), or with "url" or "image_url" (a data URL, or an object with one as "url"). What a
/// source says of its type is ignored: the bytes tell.
/// @param where  names the source in errors: "images[2]"
/// @throws Error kRequest: none of these forms, no base64, too large, a remote URL, or a file that cannot be read
MediaSource read_image_source(const Json& json, const std::string& where, const MediaSourceRules& rules);

/// Reads a clip: the same forms ("video_url" for "image_url"), where a path may also be a folder of pictures, read in
/// the order of their names; or an array of images, or {"frames": [image, ...], "fps": their rate}.
MediaSource read_video_source(const Json& json, const std::string& where, const MediaSourceRules& rules);

}  // namespace treble
