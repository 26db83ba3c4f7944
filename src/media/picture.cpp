#include "media/picture.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <cstring>

#include "media/picture_formats.h"

namespace treble {
namespace {

bool has_at(std::span<const std::byte> file, std::size_t offset, std::string_view bytes) {
  return file.size() >= offset + bytes.size() && std::memcmp(file.data() + offset, bytes.data(), bytes.size()) == 0;
}

}  // namespace

std::string_view to_string(PictureFormat format) {
  switch (format) {
    case PictureFormat::kPng:
      return "PNG";
    case PictureFormat::kJpeg:
      return "JPEG";
    case PictureFormat::kWebp:
      return "WebP";
    case PictureFormat::kGif:
      return "GIF";
    case PictureFormat::kUnknown:
      break;
  }
  return "picture";
}

PictureFormat sniff_picture(std::span<const std::byte> file) {
  if (has_at(file, 0, "\x89PNG\r\n\x1a\n")) return PictureFormat::kPng;
  if (has_at(file, 0, "\xff\xd8\xff")) return PictureFormat::kJpeg;
  if (has_at(file, 0, "RIFF") && has_at(file, 8, "WEBP")) return PictureFormat::kWebp;
  if (has_at(file, 0, "GIF87a") || has_at(file, 0, "GIF89a")) return PictureFormat::kGif;
  return PictureFormat::kUnknown;
}

Picture decode_picture(std::span<const std::byte> file, const MediaLimits& limits) {
  if (file.empty())
    throw Error(ErrorCode::kRequest, "media: a picture has no bytes; send a PNG, JPEG, WebP or GIF file");
  if (file.size() > limits.max_image_bytes) {
    throw Error(ErrorCode::kRequest,
                fmt::format("media: a picture's file has {} bytes, the limit is {}; send a smaller one", file.size(),
                            limits.max_image_bytes));
  }
  switch (sniff_picture(file)) {
    case PictureFormat::kPng:
      return decode_png(file, limits);
    case PictureFormat::kJpeg:
      return decode_jpeg(file, limits);
    case PictureFormat::kWebp:
      return decode_webp(file, limits);
    case PictureFormat::kGif:
      return decode_gif(file, limits);
    case PictureFormat::kUnknown:
      break;
  }
  throw Error(ErrorCode::kRequest, "media: a picture is no PNG, JPEG, WebP or GIF file by its first bytes; convert it");
}

Picture make_picture(PictureFormat format, std::int64_t height, std::int64_t width, const MediaLimits& limits) {
  if (height <= 0 || width <= 0) fail_damaged(format, fmt::format("it is {} x {} pixels large", width, height));
  if (height > limits.max_pixels / width) {
    throw Error(ErrorCode::kRequest,
                fmt::format("media: a {} file is {} x {} pixels large, the limit is {} pixels; shrink it",
                            to_string(format), width, height, limits.max_pixels));
  }
  Picture picture{height, width, {}};
  picture.rgb.resize(static_cast<std::size_t>(height * picture.row_bytes()));
  return picture;
}

void fail_damaged(PictureFormat format, std::string_view what) {
  throw Error(ErrorCode::kRequest,
              fmt::format("media: a {} file is damaged: {}; send a whole file", to_string(format), what));
}

}  // namespace treble
