#include <webp/decode.h>
#include <webp/demux.h>

#include <cstring>
#include <memory>

#include "media/picture_formats.h"

namespace treble {
namespace {

constexpr PictureFormat kFormat = PictureFormat::kWebp;

struct Closer {
  void operator()(WebPAnimDecoder* decoder) const { WebPAnimDecoderDelete(decoder); }
};

}  // namespace

Picture decode_webp(std::span<const std::byte> file, const MediaLimits& limits) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(file.data());
  WebPBitstreamFeatures features = {};
  if (WebPGetFeatures(bytes, file.size(), &features) != VP8_STATUS_OK) fail_damaged(kFormat, "its header is not valid");
  Picture picture = make_picture(kFormat, features.height, features.width, limits);
  if (!features.has_animation) {
    if (!WebPDecodeRGBInto(bytes, file.size(), picture.rgb.data(),
                           static_cast<std::size_t>(3 * picture.height * picture.width),
                           static_cast<int>(picture.row_bytes())))
      fail_damaged(kFormat, "its data end too early or are not valid");
    return picture;
  }

  // The first frame may cover a part of the canvas; the rest is black.
  const WebPData data = {bytes, file.size()};
  const std::unique_ptr<WebPAnimDecoder, Closer> decoder(WebPAnimDecoderNew(&data, nullptr));
  std::uint8_t* rgba = nullptr;
  int timestamp = 0;
  if (!decoder || !WebPAnimDecoderHasMoreFrames(decoder.get()) ||
      !WebPAnimDecoderGetNext(decoder.get(), &rgba, &timestamp))
    fail_damaged(kFormat, "its first frame is not valid, or its data end too early");
  for (std::int64_t pixel = 0; pixel < picture.height * picture.width; ++pixel)
    std::memcpy(picture.rgb.data() + 3 * pixel, rgba + 4 * pixel, 3);
  return picture;
}

}  // namespace treble
