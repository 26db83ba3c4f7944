#include "record/media_options.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <string>
#include <string_view>

namespace treble {
namespace {

class Reader {
 public:
  Reader(MediaOptions& options, std::string path) : options_(options), path_(std::move(path)) {}

  /// Reads all members for images, videos or both.
  void read(const Json& members, bool for_images, bool for_videos) const {
    if (!members.is_object()) fail(fmt::format("is {}, expected an object", members.type_name()));
    for (const auto& [key, value] : members.as_object()) {
      if (value.is_null()) continue;
      if (for_images && for_videos && key == "images_kwargs") {
        Reader(options_, path_ + ".images_kwargs").read(value, true, false);
      } else if (for_images && for_videos && key == "videos_kwargs") {
        Reader(options_, path_ + ".videos_kwargs").read(value, false, true);
      } else if (!read_member(key, value, for_images, for_videos)) {
        fail(fmt::format("has {}, expected {}", dump_json(Json(key.substr(0, 40))),
                         for_videos ? R"("min_pixels", "max_pixels", "fps", "num_frames" or "do_sample_frames")"
                                    : R"("min_pixels" or "max_pixels")"));
      }
    }
  }

 private:
  bool read_member(std::string_view key, const Json& value, bool for_images, bool for_videos) const {
    if (key == "min_pixels" || key == "max_pixels") {
      const std::int64_t pixels = integer(key, value);
      const bool is_least = key == "min_pixels";
      if (for_images) (is_least ? options_.image.min_pixels : options_.image.max_pixels) = pixels;
      if (for_videos) (is_least ? options_.video.min_pixels : options_.video.max_pixels) = pixels;
      return true;
    }
    if (!for_videos) return false;
    if (key == "fps") {
      if (!value.is_number()) fail_member(key, value, "a number");
      options_.video.fps = value.as_double();
    } else if (key == "num_frames") {
      options_.video.num_frames = integer(key, value);
    } else if (key == "do_sample_frames") {
      if (!value.is_bool()) fail_member(key, value, "a boolean");
      options_.video.do_sample_frames = value.as_bool();
    } else {
      return false;
    }
    return true;
  }

  std::int64_t integer(std::string_view key, const Json& value) const {
    long long number = 0;
    if (!value.is_number() || !value.as_int64(number)) fail_member(key, value, "an integer");
    return number;
  }

  [[noreturn]] void fail_member(std::string_view key, const Json& value, std::string_view expected) const {
    throw Error(ErrorCode::kRequest,
                fmt::format("request: {}.{} is {}, expected {}", path_, key, value.type_name(), expected));
  }

  [[noreturn]] void fail(const std::string& problem) const {
    throw Error(ErrorCode::kRequest, fmt::format("request: {} {}", path_, problem));
  }

  MediaOptions& options_;
  std::string path_;
};

}  // namespace

MediaOptions read_media_options(const Json& media_kwargs) {
  MediaOptions options;
  if (!media_kwargs.is_null()) Reader(options, "media_kwargs").read(media_kwargs, true, true);
  return options;
}

}  // namespace treble
