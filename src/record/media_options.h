#pragma once

#include <treble/json.h>

#include "media/prepare.h"

namespace treble {

/// A request's options for the preparation of its images and videos.
struct MediaOptions {
  ImageOptions image;
  VideoOptions video;
};

/// Reads Request::media_kwargs: {"min_pixels", "max_pixels", "fps", "num_frames", "do_sample_frames"}, as the
/// reference's processor takes them; the first two count for images and for videos. What stands in "images_kwargs" or
/// "videos_kwargs" counts for these only.
/// @throws Error kRequest naming the member: unknown, or of a wrong type
MediaOptions read_media_options(const Json& media_kwargs);

}  // namespace treble
