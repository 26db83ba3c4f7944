#pragma once

#include <cstdint>

#include "media/fitted_size.h"
#include "media/media_item.h"
#include "media/picture.h"

namespace treble {

/// Resizes a picture to grid_h * 16 x grid_w * 16 pixels of `item` and writes it as frame number `frame` (an image has
/// one, a clip two for each temporal patch) into its levels, which have their final size. Bit for bit what the
/// reference computes from the same RGB levels.
void write_frame(const Picture& picture, std::int64_t frame, MediaItem& item);

}  // namespace treble
