#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "media/picture.h"

namespace treble {

// One decoder each; decode_picture() has checked the number of bytes and the first few of them.
Picture decode_png(std::span<const std::byte> file, const MediaLimits& limits);
Picture decode_jpeg(std::span<const std::byte> file, const MediaLimits& limits);
Picture decode_webp(std::span<const std::byte> file, const MediaLimits& limits);
Picture decode_gif(std::span<const std::byte> file, const MediaLimits& limits);

/// A picture of that size, its pixels not set. @throws Error kRequest if a side is 0 or the area is beyond the limit
Picture make_picture(PictureFormat format, std::int64_t height, std::int64_t width, const MediaLimits& limits);

/// "media: a PNG file is damaged: <what>; send a whole file"
[[noreturn]] void fail_damaged(PictureFormat format, std::string_view what);

/// Color table of a palette picture. As in Pillow, an index beyond the file's entries is black.
struct Palette {
  std::uint8_t rgb[256][3] = {};
};

}  // namespace treble
