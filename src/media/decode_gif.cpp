#include <fmt/format.h>
#include <gif_lib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "media/gif_reader.h"
#include "media/picture_formats.h"

namespace treble {
namespace {

constexpr PictureFormat kFormat = PictureFormat::kGif;

[[noreturn]] void fail(int gif_error) {
  const char* text = GifErrorString(gif_error);
  fail_damaged(kFormat, text ? text : "it ends in the middle");
}

/// Skips extensions up to the first picture. Returns the index that is transparent in it, if one is.
std::optional<std::uint8_t> find_first_picture(GifFileType* gif) {
  std::optional<std::uint8_t> transparent;
  for (;;) {
    GifRecordType type = UNDEFINED_RECORD_TYPE;
    if (DGifGetRecordType(gif, &type) == GIF_ERROR) fail(gif->Error);
    if (type == IMAGE_DESC_RECORD_TYPE) return transparent;
    if (type != EXTENSION_RECORD_TYPE) fail_damaged(kFormat, "it holds no picture");
    int code = 0;
    GifByteType* block = nullptr;
    if (DGifGetExtension(gif, &code, &block) == GIF_ERROR) fail(gif->Error);
    if (code == GRAPHICS_EXT_FUNC_CODE && block && block[0] >= 4) {
      transparent.reset();
      if (block[1] & 1) transparent = block[4];
    }
    while (block)
      if (DGifGetExtensionNext(gif, &block) == GIF_ERROR) fail(gif->Error);
  }
}

/// Without a table, indices are shades of gray.
Palette read_palette(const ColorMapObject* colors) {
  Palette palette;
  for (int index = 0; index < 256; ++index) {
    const auto gray = static_cast<std::uint8_t>(index);
    std::array<std::uint8_t, 3> rgb = {gray, gray, gray};
    if (colors) {
      if (index >= colors->ColorCount) break;
      const GifColorType& color = colors->Colors[index];
      rgb = {color.Red, color.Green, color.Blue};
    }
    std::copy(rgb.begin(), rgb.end(), palette.rgb[index]);
  }
  return palette;
}

/// Rows of an interlaced picture come in four passes.
std::vector<std::int64_t> row_order(std::int64_t height, bool is_interlaced) {
  std::vector<std::int64_t> rows;
  if (!is_interlaced) {
    for (std::int64_t y = 0; y < height; ++y) rows.push_back(y);
    return rows;
  }
  constexpr std::int64_t kFirst[] = {0, 4, 2, 1}, kStep[] = {8, 8, 4, 2};
  for (int pass = 0; pass < 4; ++pass)
    for (std::int64_t y = kFirst[pass]; y < height; y += kStep[pass]) rows.push_back(y);
  return rows;
}

}  // namespace

Picture decode_gif(std::span<const std::byte> file, const MediaLimits& limits) {
  GifBytes source{file};
  int gif_error = 0;
  const GifPointer gif = open_gif(source, &gif_error);
  if (!gif) fail(gif_error);
  const std::optional<std::uint8_t> transparent = find_first_picture(gif.get());
  if (DGifGetImageDesc(gif.get()) == GIF_ERROR) fail(gif->Error);

  // A frame that reaches beyond the canvas extends it, as in Pillow.
  const GifImageDesc& frame = gif->Image;
  if (frame.Width <= 0 || frame.Height <= 0) fail_damaged(kFormat, "its first frame is empty");
  Picture picture = make_picture(kFormat, std::max(gif->SHeight, frame.Top + frame.Height),
                                 std::max(gif->SWidth, frame.Left + frame.Width), limits);

  const Palette palette = read_palette(frame.ColorMap ? frame.ColorMap : gif->SColorMap);
  const bool covers_canvas = frame.Height == picture.height && frame.Width == picture.width;
  if (!covers_canvas) {
    const std::uint8_t* background = palette.rgb[transparent.value_or(0)];
    for (std::int64_t pixel = 0; pixel < picture.height * picture.width; ++pixel)
      std::memcpy(picture.rgb.data() + 3 * pixel, background, 3);
  }
  std::vector<GifPixelType> row(static_cast<std::size_t>(frame.Width));
  for (const std::int64_t y : row_order(frame.Height, frame.Interlace)) {
    if (DGifGetLine(gif.get(), row.data(), frame.Width) == GIF_ERROR) fail(gif->Error);
    std::uint8_t* rgb = picture.row(frame.Top + y) + 3 * frame.Left;
    for (std::size_t x = 0; x < row.size(); ++x) std::memcpy(rgb + 3 * x, palette.rgb[row[x]], 3);
  }
  return picture;
}

}  // namespace treble
