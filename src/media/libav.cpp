#include "media/libav.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <treble/error.h>

#include <string>

namespace treble {
namespace {

/// A library that stays loaded: the functions taken from it are used until the program ends.
class Library {
 public:
  Library(const char* name, int major) : file_(fmt::format("lib{}.so.{}", name, major)) {
    handle_ = ::dlopen(file_.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle_) {
      throw Error(
          ErrorCode::kRequest,
          fmt::format("media: video files are read through FFmpeg's libraries, and {} cannot be loaded; install "
                      "Debian's libavformat{}, libavcodec{} and libswscale{}, or send the clip as pictures",
                      file_, LIBAVFORMAT_VERSION_MAJOR, LIBAVCODEC_VERSION_MAJOR, LIBSWSCALE_VERSION_MAJOR));
    }
  }

  template <typename Function>
  void find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(::dlsym(handle_, name));
    if (!function)
      throw Error(ErrorCode::kRequest, fmt::format("media: {} has no function {}; install Debian's", file_, name));
  }

 private:
  std::string file_;
  void* handle_ = nullptr;
};

Libav load() {
  Libav av = {};
  const Library util("avutil", LIBAVUTIL_VERSION_MAJOR);
  util.find("av_dict_free", av.av_dict_free);
  util.find("av_dict_set_int", av.av_dict_set_int);
  util.find("av_frame_alloc", av.av_frame_alloc);
  util.find("av_frame_free", av.av_frame_free);
  util.find("av_frame_get_buffer", av.av_frame_get_buffer);
  util.find("av_free", av.av_free);
  util.find("av_log_set_level", av.av_log_set_level);
  util.find("av_malloc", av.av_malloc);
  util.find("av_max_alloc", av.av_max_alloc);
  util.find("av_strdup", av.av_strdup);
  util.find("av_strerror", av.av_strerror);

  const Library codec("avcodec", LIBAVCODEC_VERSION_MAJOR);
  codec.find("avcodec_alloc_context3", av.avcodec_alloc_context3);
  codec.find("avcodec_find_decoder", av.avcodec_find_decoder);
  codec.find("avcodec_flush_buffers", av.avcodec_flush_buffers);
  codec.find("avcodec_free_context", av.avcodec_free_context);
  codec.find("avcodec_get_name", av.avcodec_get_name);
  codec.find("avcodec_open2", av.avcodec_open2);
  codec.find("avcodec_parameters_to_context", av.avcodec_parameters_to_context);
  codec.find("avcodec_receive_frame", av.avcodec_receive_frame);
  codec.find("avcodec_send_packet", av.avcodec_send_packet);
  codec.find("av_packet_alloc", av.av_packet_alloc);
  codec.find("av_packet_free", av.av_packet_free);

  const Library format("avformat", LIBAVFORMAT_VERSION_MAJOR);
  format.find("avformat_alloc_context", av.avformat_alloc_context);
  format.find("avformat_open_input", av.avformat_open_input);
  format.find("avformat_close_input", av.avformat_close_input);
  format.find("avformat_find_stream_info", av.avformat_find_stream_info);
  format.find("avformat_index_get_entries_count", av.avformat_index_get_entries_count);
  format.find("avio_alloc_context", av.avio_alloc_context);
  format.find("avio_context_free", av.avio_context_free);
  format.find("av_find_input_format", av.av_find_input_format);
  format.find("av_find_best_stream", av.av_find_best_stream);
  format.find("av_read_frame", av.av_read_frame);

  const Library scale("swscale", LIBSWSCALE_VERSION_MAJOR);
  scale.find("sws_freeContext", av.sws_freeContext);
  scale.find("sws_getCachedContext", av.sws_getCachedContext);
  scale.find("sws_getCoefficients", av.sws_getCoefficients);
  scale.find("sws_scale", av.sws_scale);
  scale.find("sws_setColorspaceDetails", av.sws_setColorspaceDetails);

  // They report damage on stderr, where a library has no business; what counts comes back as an Error.
  av.av_log_set_level(AV_LOG_QUIET);
  // A small file can promise an index of gigabytes. Frames and packets within our limits take less than this.
  av.av_max_alloc(std::size_t{512} << 20);
  return av;
}

}  // namespace

const Libav& libav() {
  static const Libav loaded = load();
  return loaded;
}

}  // namespace treble
