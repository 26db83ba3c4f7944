#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "media/media_limits.h"
#include "media/uninitialised_allocator.h"

namespace treble {

/// A decoded picture: rows of pixels, three bytes each (red, green, blue), without padding.
struct Picture {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<std::uint8_t, UninitialisedAllocator<std::uint8_t>> rgb;  ///< [height, width, 3]

  std::int64_t row_bytes() const { return 3 * width; }
  std::uint8_t* row(std::int64_t y) { return rgb.data() + y * row_bytes(); }
  const std::uint8_t* row(std::int64_t y) const { return rgb.data() + y * row_bytes(); }
};

enum class PictureFormat { kUnknown, kPng, kJpeg, kWebp, kGif };

/// "PNG", "JPEG", "WebP", "GIF"; "picture" for kUnknown.
std::string_view to_string(PictureFormat format);

/// What the first bytes say; names and declared types are never asked.
PictureFormat sniff_picture(std::span<const std::byte> file);

/// Decodes a PNG, JPEG, WebP or GIF file (of animations the first frame) to what Pillow's convert("RGB") gives: alpha
/// is dropped, not blended; palettes and gray are expanded; of 16 bits a colour keeps the upper 8, while 16-bit gray is
/// cut off at 255; CMYK is read as Adobe writes it, inverted. Colour profiles, gamma and the EXIF orientation are
/// ignored.
/// @throws Error kRequest: none of the formats, a file or a picture beyond the limits (known from the header, before
///         its pixels take memory), a damaged or truncated file. A damaged file is never answered with what could be
///         read of it.
Picture decode_picture(std::span<const std::byte> file, const MediaLimits& limits);

}  // namespace treble
