// Any bytes are a picture, or refused with kRequest.

#include <treble/error.h>

#include <cstdint>
#include <cstdlib>

#include "media/prepare.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Small limits: what is looked for are wrong reads, not time spent on large pictures.
  const treble::MediaLimits limits = {.max_pixels = 1 << 16, .max_prepared_pixels = 1 << 18};
  treble::MediaConfig config;
  config.image.min_pixels = 1024;
  config.image.max_pixels = 1 << 14;
  try {
    treble::prepare_image({reinterpret_cast<const std::byte*>(data), size}, config, limits);
  } catch (const treble::Error& error) {
    if (error.code() != treble::ErrorCode::kRequest) std::abort();
  }
  return 0;
}
