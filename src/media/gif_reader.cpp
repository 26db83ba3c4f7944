#include "media/gif_reader.h"

#include <algorithm>
#include <cstring>

namespace treble {
namespace {

int read_bytes(GifFileType* gif, GifByteType* out, int count) {
  auto* source = static_cast<GifBytes*>(gif->UserData);
  const std::size_t available =
      std::min(static_cast<std::size_t>(std::max(count, 0)), source->file.size() - source->position);
  std::memcpy(out, source->file.data() + source->position, available);
  source->position += available;
  return static_cast<int>(available);
}

}  // namespace

GifPointer open_gif(GifBytes& source, int* error) {
  return GifPointer(DGifOpen(&source, read_bytes, error));
}

}  // namespace treble
