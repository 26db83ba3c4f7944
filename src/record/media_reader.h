#pragma once

#include <treble/record.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>

#include "base/lru_cache.h"
#include "media/media_config.h"
#include "media/media_item.h"
#include "media/media_limits.h"

namespace treble {

/// Reads and prepares the media of requests, and keeps what it prepared: a picture that comes again is not decoded
/// again. Thread-safe.
class MediaReader {
 public:
  /// @param config       how the release prepares media
  /// @param cache_bytes  of prepared pixels, the most that is kept
  explicit MediaReader(const MediaConfig& config, const MediaLimits& limits = {},
                       std::size_t cache_bytes = std::size_t{512} << 20);

  /// @param max_tokens  of all items; reading ends where they have more, before the rest takes memory
  /// @return the request's images, then its videos
  /// @throws Error kRequest naming the item ("request: images[2] ..."): what read_image_source and prepare_image throw,
  /// or more items than the limit; kTooLong; kCheckpoint if the release does not say how such media are prepared
  MediaItems read(const Request& request, std::int64_t max_tokens);

  /// Items that were decoded so far.
  std::size_t num_prepared() const;

 private:
  template <typename Prepare>
  std::shared_ptr<const MediaItem> find_or(const std::string& digest, const Prepare& prepare);

  MediaConfig config_;
  MediaLimits limits_;
  mutable std::mutex mutex_;  // of the cache; decoding goes on beside it
  LruCache<MediaItem> cache_;
  std::size_t num_prepared_ = 0;
};

}  // namespace treble
