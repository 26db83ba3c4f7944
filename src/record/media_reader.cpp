#include "record/media_reader.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <span>
#include <string>
#include <utility>

#include "media/prepare.h"
#include "record/media_options.h"
#include "record/media_source.h"

namespace treble {
namespace {

std::vector<FileBytes> views_of(const std::vector<FileContent>& files) {
  return {files.begin(), files.end()};
}

/// Calls read(item, "images[i]") for every item; errors of the preparation say which item it was.
template <typename Read>
void for_each_item(const Json& list, const char* name, const MediaLimits& limits, const Read& read) {
  if (!list.is_array()) return;
  const Json::Array& items = list.as_array();
  if (items.size() > limits.max_items)
    throw Error(ErrorCode::kRequest,
                fmt::format("request: {} holds {} items, limit is {}", name, items.size(), limits.max_items));
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string where = fmt::format("{}[{}]", name, i);
    try {
      read(items[i], where);
    } catch (const Error& error) {
      const std::string what = error.what();
      if (error.code() != ErrorCode::kRequest || what.starts_with("request: ")) throw;
      throw Error(error.code(), fmt::format("request: {}: {}", where, what));
    }
  }
}

}  // namespace

MediaReader::MediaReader(const MediaConfig& config, const MediaLimits& limits, std::size_t cache_bytes)
    : config_(config), limits_(limits), cache_(cache_bytes) {}

template <typename Prepare>
std::shared_ptr<const MediaItem> MediaReader::find_or(const std::string& digest, const Prepare& prepare) {
  {
    const std::lock_guard lock(mutex_);
    if (std::shared_ptr<const MediaItem> known = cache_.find(digest)) return known;
  }
  auto item = std::make_shared<MediaItem>(prepare());
  item->digest = digest;
  const std::lock_guard lock(mutex_);
  ++num_prepared_;
  cache_.insert(digest, item, item->levels.size() + digest.size());
  return item;
}

MediaItems MediaReader::read(const Request& request, std::int64_t max_tokens) {
  const MediaOptions options = read_media_options(request.media_kwargs);
  const MediaSourceRules rules{.limits = limits_, .folder = request.media_folder};
  MediaItems items;
  std::int64_t num_tokens = 0;
  const auto add = [&](std::shared_ptr<const MediaItem> item) {
    num_tokens += item->num_tokens();
    if (num_tokens > max_tokens)
      throw Error(ErrorCode::kTooLong,
                  fmt::format("request: the first {} images and videos take {} tokens, limit is {}; send fewer or "
                              "smaller ones, or lower media_kwargs.max_pixels",
                              items.size() + 1, num_tokens, max_tokens));
    items.push_back(std::move(item));
  };
  for_each_item(request.images, "images", limits_, [&](const Json& json, const std::string& where) {
    require_image_block(config_);
    const MediaSource source = read_image_source(json, where, rules);
    const FileBytes file = source.files.front();
    add(find_or(image_digest(file, config_, options.image),
                [&] { return prepare_image(file, config_, limits_, options.image); }));
  });
  for_each_item(request.videos, "videos", limits_, [&](const Json& json, const std::string& where) {
    require_video_block(config_);
    const MediaSource source = read_video_source(json, where, rules);
    if (!source.is_frames) {
      const FileBytes file = source.files.front();
      add(find_or(video_digest(file, config_, options.video),
                  [&] { return prepare_video(file, config_, limits_, options.video); }));
      return;
    }
    const std::vector<FileBytes> files = views_of(source.files);
    VideoOptions video = options.video;
    video.source_fps = source.frame_rate;
    add(find_or(frames_digest(files, config_, video), [&] { return prepare_frames(files, config_, limits_, video); }));
  });
  return items;
}

std::size_t MediaReader::num_prepared() const {
  const std::lock_guard lock(mutex_);
  return num_prepared_;
}

}  // namespace treble
