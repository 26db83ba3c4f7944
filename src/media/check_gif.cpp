#include <fmt/format.h>
#include <gif_lib.h>
#include <treble/error.h>

#include <cstring>
#include <vector>

#include "media/container.h"
#include "media/gif_reader.h"

namespace treble {
namespace {

[[noreturn]] void fail(const GifFileType& gif, std::int64_t picture) {
  const char* text = GifErrorString(gif.Error);
  throw Error(ErrorCode::kRequest,
              fmt::format("media: a video file is damaged: picture {} of a GIF: {}; send a whole file", picture,
                          text ? text : "it ends in the middle"));
}

}  // namespace

std::int64_t check_gif(std::span<const std::byte> file, const MediaLimits& limits) {
  GifBytes source{file};
  const GifPointer gif = open_gif(source);
  if (!gif) fail_damaged_at(0, "its GIF header is cut off");
  std::vector<GifPixelType> row;
  std::int64_t num_pictures = 0;
  while (num_pictures <= limits.max_frames) {
    GifRecordType type = UNDEFINED_RECORD_TYPE;
    if (DGifGetRecordType(gif.get(), &type) == GIF_ERROR) fail(*gif, num_pictures);
    if (type == TERMINATE_RECORD_TYPE) {
      const std::span<const std::byte> rest = file.subspan(source.position);
      if (rest.size() >= 4 && std::memcmp(rest.data(), "GIF8", 4) == 0)
        fail_damaged_at(source.position, "a second clip is appended to it");
      break;
    }
    if (type == EXTENSION_RECORD_TYPE) {
      int code = 0;
      GifByteType* block = nullptr;
      if (DGifGetExtension(gif.get(), &code, &block) == GIF_ERROR) fail(*gif, num_pictures);
      while (block)
        if (DGifGetExtensionNext(gif.get(), &block) == GIF_ERROR) fail(*gif, num_pictures);
      continue;
    }
    if (DGifGetImageDesc(gif.get()) == GIF_ERROR) fail(*gif, num_pictures);
    const GifImageDesc& picture = gif->Image;
    if (picture.Width <= 0 || picture.Height <= 0) fail_damaged_at(source.position, "a GIF's picture is empty");
    if (picture.Height > limits.max_pixels / picture.Width)
      throw Error(ErrorCode::kRequest,
                  fmt::format("media: a video file has a picture of {} x {} pixels, the limit is {} pixels; shrink it",
                              picture.Width, picture.Height, limits.max_pixels));
    row.resize(static_cast<std::size_t>(picture.Width));
    for (int y = 0; y < picture.Height; ++y)
      if (DGifGetLine(gif.get(), row.data(), picture.Width) == GIF_ERROR) fail(*gif, num_pictures);
    ++num_pictures;
  }
  return num_pictures;
}

}  // namespace treble
