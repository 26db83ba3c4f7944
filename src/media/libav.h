#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>
}

namespace treble {

/// The functions of FFmpeg's libraries that video files need. The libraries are loaded when the first video file comes:
/// a program that never reads one does not need them. Their major versions are those of the headers of this build.
struct Libav {
  decltype(&::avformat_alloc_context) avformat_alloc_context;
  decltype(&::avformat_open_input) avformat_open_input;
  decltype(&::avformat_close_input) avformat_close_input;
  decltype(&::avformat_find_stream_info) avformat_find_stream_info;
  decltype(&::avformat_index_get_entries_count) avformat_index_get_entries_count;
  decltype(&::avio_alloc_context) avio_alloc_context;
  decltype(&::avio_context_free) avio_context_free;
  decltype(&::av_find_input_format) av_find_input_format;
  decltype(&::av_find_best_stream) av_find_best_stream;
  decltype(&::av_read_frame) av_read_frame;

  decltype(&::avcodec_alloc_context3) avcodec_alloc_context3;
  decltype(&::avcodec_find_decoder) avcodec_find_decoder;
  decltype(&::avcodec_flush_buffers) avcodec_flush_buffers;
  decltype(&::avcodec_free_context) avcodec_free_context;
  decltype(&::avcodec_get_name) avcodec_get_name;
  decltype(&::avcodec_open2) avcodec_open2;
  decltype(&::avcodec_parameters_to_context) avcodec_parameters_to_context;
  decltype(&::avcodec_receive_frame) avcodec_receive_frame;
  decltype(&::avcodec_send_packet) avcodec_send_packet;
  decltype(&::av_packet_alloc) av_packet_alloc;
  decltype(&::av_packet_free) av_packet_free;

  decltype(&::av_dict_free) av_dict_free;
  decltype(&::av_dict_set_int) av_dict_set_int;
  decltype(&::av_frame_alloc) av_frame_alloc;
  decltype(&::av_frame_free) av_frame_free;
  decltype(&::av_frame_get_buffer) av_frame_get_buffer;
  decltype(&::av_free) av_free;
  decltype(&::av_log_set_level) av_log_set_level;
  decltype(&::av_malloc) av_malloc;
  decltype(&::av_max_alloc) av_max_alloc;
  decltype(&::av_strdup) av_strdup;
  decltype(&::av_strerror) av_strerror;

  decltype(&::sws_freeContext) sws_freeContext;
  decltype(&::sws_getCachedContext) sws_getCachedContext;
  decltype(&::sws_getCoefficients) sws_getCoefficients;
  decltype(&::sws_scale) sws_scale;
  decltype(&::sws_setColorspaceDetails) sws_setColorspaceDetails;
};

/// Loads the libraries the first time. @throws Error kRequest, saying what to install, if one is missing
const Libav& libav();

}  // namespace treble
