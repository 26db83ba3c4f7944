#pragma once

#include <gif_lib.h>

#include <cstddef>
#include <memory>
#include <span>

namespace treble {

/// A GIF file in memory, as giflib reads it.
struct GifBytes {
  std::span<const std::byte> file;
  std::size_t position = 0;
};

struct CloseGif {
  void operator()(GifFileType* gif) const { DGifCloseFile(gif, nullptr); }
};
using GifPointer = std::unique_ptr<GifFileType, CloseGif>;

/// Reads the header. The source must outlive the result.
/// @return null if it is damaged, with giflib's reason in `error`
GifPointer open_gif(GifBytes& source, int* error = nullptr);

}  // namespace treble
