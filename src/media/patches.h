#pragma once

#include <cstdint>

#include "media/fitted_size.h"
#include "media/media_config.h"
#include "media/media_item.h"
#include "media/picture.h"

namespace treble {

/// Which frames of a temporal patch a picture fills.
enum class PatchFrame { kFirst, kSecond, kBoth };

/// Resizes a picture to grid_h * 16 x grid_w * 16 pixels of `item`, normalises it, and writes it into temporal patch
/// `t`, whose pixel_values have their final size. Bit for bit what the reference computes from the same RGB levels.
void write_frame(const Picture& picture, const MediaProcessorConfig& config, std::int64_t t, PatchFrame frame,
                 MediaItem& item);

}  // namespace treble
