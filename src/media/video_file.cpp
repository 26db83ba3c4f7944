#include "media/video_file.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "media/container.h"
#include "media/libav.h"

namespace treble {
namespace {

/// Calls the named function of libav() on a pointer to a pointer, as most of FFmpeg's "free" functions want it.
template <auto kFree>
struct Free {
  template <typename T>
  void operator()(T* object) const {
    (libav().*kFree)(&object);
  }
};
using PacketPointer = std::unique_ptr<AVPacket, Free<&Libav::av_packet_free>>;
using FramePointer = std::unique_ptr<AVFrame, Free<&Libav::av_frame_free>>;
using CodecPointer = std::unique_ptr<AVCodecContext, Free<&Libav::avcodec_free_context>>;
using FormatPointer = std::unique_ptr<AVFormatContext, Free<&Libav::avformat_close_input>>;

struct FreeIo {
  void operator()(AVIOContext* io) const {
    libav().av_free(io->buffer);
    libav().avio_context_free(&io);
  }
};
using IoPointer = std::unique_ptr<AVIOContext, FreeIo>;

struct FreeScaler {
  void operator()(SwsContext* scaler) const { libav().sws_freeContext(scaler); }
};
using ScalerPointer = std::unique_ptr<SwsContext, FreeScaler>;

constexpr AVCodecID kCodecs[] = {AV_CODEC_ID_H264,  AV_CODEC_ID_HEVC,   AV_CODEC_ID_AV1,
                                 AV_CODEC_ID_VP8,   AV_CODEC_ID_VP9,    AV_CODEC_ID_MPEG4,
                                 AV_CODEC_ID_MJPEG, AV_CODEC_ID_PRORES, AV_CODEC_ID_GIF};

// The same as FFmpeg's decoders: those that its search for a stream's parameters may use.
constexpr const char* kDecoders = "h264,hevc,libdav1d,libaom-av1,av1,vp8,vp9,mpeg4,mjpeg,prores,gif";

[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorCode::kRequest, "media: a video file " + what);
}

[[noreturn]] void fail_with(const std::string& what, int av_error) {
  char text[AV_ERROR_MAX_STRING_SIZE] = "";
  libav().av_strerror(av_error, text, sizeof text);
  fail(fmt::format("{}: {}; send a whole file", what, text));
}

template <typename Pointer>
Pointer owned(typename Pointer::pointer object) {
  if (!object) throw std::bad_alloc();
  return Pointer(object);
}

enum class Container { kGif, kMatroska, kMp4 };

/// The container by the first bytes; others, such as playlists, which name further files, are never tried.
Container sniff(std::span<const std::byte> file) {
  const auto has_at = [file](std::size_t offset, std::string_view bytes) {
    return file.size() >= offset + bytes.size() && std::memcmp(file.data() + offset, bytes.data(), bytes.size()) == 0;
  };
  if (has_at(0, "GIF87a") || has_at(0, "GIF89a")) return Container::kGif;
  if (has_at(0, "\x1a\x45\xdf\xa3")) return Container::kMatroska;
  for (const char* box : {"ftyp", "moov", "mdat", "wide", "free", "skip"})
    if (has_at(4, box)) return Container::kMp4;
  fail("is no MP4, MOV, WebM, Matroska or GIF file by its first bytes; convert it, or send its frames as pictures");
}

const char* demuxer_name(Container container) {
  switch (container) {
    case Container::kGif:
      return "gif";
    case Container::kMatroska:
      return "matroska";
    case Container::kMp4:
      break;
  }
  return "mov";
}

/// Reading from memory.
struct Source {
  std::span<const std::byte> file;
  std::size_t position = 0;

  static int read(void* opaque, std::uint8_t* out, int count) {
    auto* source = static_cast<Source*>(opaque);
    const std::size_t available =
        std::min(static_cast<std::size_t>(std::max(count, 0)), source->file.size() - source->position);
    if (available == 0) return AVERROR_EOF;
    std::memcpy(out, source->file.data() + source->position, available);
    source->position += available;
    return static_cast<int>(available);
  }

  static std::int64_t seek(void* opaque, std::int64_t offset, int whence) {
    auto* source = static_cast<Source*>(opaque);
    const auto size = static_cast<std::int64_t>(source->file.size());
    switch (whence & ~AVSEEK_FORCE) {
      case AVSEEK_SIZE:
        return size;
      case SEEK_SET:
        break;
      case SEEK_CUR:
        offset += static_cast<std::int64_t>(source->position);
        break;
      case SEEK_END:
        offset += size;
        break;
      default:
        return AVERROR(EINVAL);
    }
    if (offset < 0 || offset > size) return AVERROR(EINVAL);
    source->position = static_cast<std::size_t>(offset);
    return offset;
  }
};

int refuse_to_open(AVFormatContext*, AVIOContext**, const char*, int, AVDictionary**) {
  return AVERROR(EPERM);
}

}  // namespace

struct VideoFile::State {
  /// A frame that is shown: when, and the packet that brings it.
  struct Frame {
    std::int64_t time = 0;  // in the stream's units
    std::size_t packet = 0;
  };

  MediaLimits limits;
  Source source;
  IoPointer io;
  FormatPointer format;
  AVStream* stream = nullptr;
  Container container = Container::kMp4;
  std::optional<std::int64_t> num_expected;  // packets, by the container's own structure
  std::vector<PacketPointer> packets;        // of the video stream, in decoding order
  std::vector<Frame> frames;                 // in display order
  bool has_times = true;                     // distinct ones: a frame is known by its time
  double fps = 0;

  CodecPointer codec;
  ScalerPointer scaler;
  FramePointer decoded, converted;
  std::size_t first_packet = 0;  // that the decoder got since it was started
  std::size_t next_packet = 0;   // that it gets
  bool may_seek = true;
  std::int64_t num_decoded = 0;

  void open(std::span<const std::byte> file);
  void check_container();
  void find_parameters();
  void read_packets();
  void list_frames();
  void open_codec();
  std::size_t key_packet_of(std::size_t index) const;
  void start_at(std::size_t packet);
  bool next_frame();
  void decode(std::size_t index);
  void advance_to(std::size_t index);
  Picture to_picture();
};

void VideoFile::State::open(std::span<const std::byte> file) {
  if (file.size() > limits.max_video_bytes)
    fail(fmt::format("has {} bytes, the limit is {}; send a smaller one", file.size(), limits.max_video_bytes));
  container = sniff(file);
  source.file = file;
  check_container();
  const AVInputFormat* demuxer = libav().av_find_input_format(demuxer_name(container));
  if (!demuxer) fail("cannot be read: this build of libavformat lacks its format; install Debian's");
  constexpr int kBufferBytes = 1 << 16;
  auto* buffer = static_cast<unsigned char*>(libav().av_malloc(kBufferBytes));
  io = owned<IoPointer>(
      libav().avio_alloc_context(buffer, kBufferBytes, 0, &source, Source::read, nullptr, Source::seek));
  AVFormatContext* context = owned<FormatPointer>(libav().avformat_alloc_context()).release();
  context->pb = io.get();
  context->flags |= AVFMT_FLAG_CUSTOM_IO;
  context->io_open = refuse_to_open;
  context->codec_whitelist = libav().av_strdup(kDecoders);
  // On failure this frees the context.
  if (const int error = libav().avformat_open_input(&context, "", demuxer, nullptr); error < 0)
    fail_with("is damaged", error);
  format.reset(context);
  find_parameters();
  const int index = libav().av_find_best_stream(context, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
  if (index < 0) fail("has no video stream; send one that has");
  stream = context->streams[index];
  const AVCodecParameters& parameters = *stream->codecpar;
  if (std::find(std::begin(kCodecs), std::end(kCodecs), parameters.codec_id) == std::end(kCodecs)) {
    fail(fmt::format("is coded as {}, which is not read; convert it to H.264 or VP9",
                     libav().avcodec_get_name(parameters.codec_id)));
  }
  if (parameters.width <= 0 || parameters.height <= 0) fail("has no picture size; send a whole file");
  if (parameters.height > limits.max_pixels / parameters.width) {
    fail(fmt::format("is {} x {} pixels large, the limit is {} pixels; shrink it", parameters.width, parameters.height,
                     limits.max_pixels));
  }
  for (unsigned int other = 0; other < context->nb_streams; ++other)
    if (context->streams[other] != stream) context->streams[other]->discard = AVDISCARD_ALL;
}

/// libavformat passes over what it cannot read, and a part of a clip would be answered like the whole.
void VideoFile::State::check_container() {
  switch (container) {
    case Container::kGif:
      num_expected = check_gif(source.file, limits);
      break;
    case Container::kMatroska:
      num_expected = check_matroska(source.file);
      break;
    case Container::kMp4:
      check_mp4(source.file);
      break;
  }
}

/// Completes what the container says of its streams by decoding a few frames, no larger than the limit.
void VideoFile::State::find_parameters() {
  std::vector<AVDictionary*> options(format->nb_streams, nullptr);
  for (AVDictionary*& of_stream : options) libav().av_dict_set_int(&of_stream, "max_pixels", limits.max_pixels, 0);
  const int error = libav().avformat_find_stream_info(format.get(), options.data());
  for (AVDictionary*& of_stream : options) libav().av_dict_free(&of_stream);
  if (error < 0) fail_with("is damaged", error);
}

void VideoFile::State::read_packets() {
  // An index may name the same bytes over and over; honest packets are parts of the file, unpacked a little at most.
  const std::size_t most_bytes = 2 * source.file.size() + (std::size_t{1} << 20);
  std::size_t num_bytes = 0;
  for (;;) {
    PacketPointer packet = owned<PacketPointer>(libav().av_packet_alloc());
    const int error = libav().av_read_frame(format.get(), packet.get());
    if (error == AVERROR_EOF) break;
    if (error < 0) fail_with("is damaged", error);
    if (packet->flags & AV_PKT_FLAG_CORRUPT) fail("is damaged: a packet is cut off; send a whole file");
    if (packet->stream_index != stream->index) continue;
    num_bytes += static_cast<std::size_t>(std::max(packet->size, 0));
    if (num_bytes > most_bytes) fail("is damaged: its frames have more bytes than itself; send a whole file");
    if (static_cast<std::int64_t>(packets.size()) >= limits.max_frames)
      fail(fmt::format("has more than {} frames, the limit; send a part of it", limits.max_frames));
    packets.push_back(std::move(packet));
  }
  // MP4's demuxer takes a cut between two frames for the end; its index, whole by now, knows better.
  if (container == Container::kMp4) num_expected = libav().avformat_index_get_entries_count(stream);
  if (static_cast<std::int64_t>(packets.size()) < num_expected.value_or(0))
    fail(fmt::format("is damaged: {} of its {} frames can be read; send a whole file", packets.size(), *num_expected));
}

void VideoFile::State::list_frames() {
  for (std::size_t index = 0; index < packets.size(); ++index) {
    const AVPacket& packet = *packets[index];
    if (packet.flags & AV_PKT_FLAG_DISCARD) continue;  // before the clip's edited begin
    if (packet.pts == AV_NOPTS_VALUE) has_times = false;
    frames.push_back({packet.pts, index});
  }
  if (frames.empty()) fail("has no frames; send one that has");
  if (has_times) {
    std::stable_sort(frames.begin(), frames.end(), [](const Frame& a, const Frame& b) { return a.time < b.time; });
    for (std::size_t i = 1; i < frames.size(); ++i) has_times &= frames[i - 1].time < frames[i].time;
  }
  // As the reference's decoder counts: all frames over the time from the first one's begin to the last one's end.
  const auto unit = static_cast<double>(stream->time_base.num) / stream->time_base.den;
  if (has_times) {
    std::int64_t end = frames.front().time;
    for (const Frame& frame : frames) {
      const std::int64_t duration = std::max<std::int64_t>(packets[frame.packet]->duration, 0);
      end = std::max(end, frame.time > INT64_MAX - duration ? INT64_MAX : frame.time + duration);
    }
    const double seconds = (static_cast<double>(end) - static_cast<double>(frames.front().time)) * unit;
    fps = static_cast<double>(frames.size()) / seconds;
  }
  for (const AVRational& rate : {stream->avg_frame_rate, stream->r_frame_rate})
    if (!(fps > 0 && fps <= 1e6) && rate.num > 0 && rate.den > 0) fps = static_cast<double>(rate.num) / rate.den;
  if (!(fps > 0 && fps <= 1e6)) fail("does not say how fast its frames follow; send them as pictures, with their rate");
}

void VideoFile::State::open_codec() {
  const AVCodec* decoder = libav().avcodec_find_decoder(stream->codecpar->codec_id);
  if (!decoder) {
    fail(fmt::format("is coded as {}, which this build of libavcodec lacks; install Debian's",
                     libav().avcodec_get_name(stream->codecpar->codec_id)));
  }
  codec = owned<CodecPointer>(libav().avcodec_alloc_context3(decoder));
  if (const int error = libav().avcodec_parameters_to_context(codec.get(), stream->codecpar); error < 0)
    fail_with("is damaged", error);
  codec->pkt_timebase = stream->time_base;
  codec->max_pixels = limits.max_pixels;
  // Several threads, each with a frame of its own, end the program on some damaged streams: an assertion in
  // libavcodec 59.
  codec->thread_count = 1;
  // A frame that cannot be decoded is an error; FFmpeg would rather make one up from its neighbours. Its concealment
  // stays on: what it repairs is reported in decode_error_flags, which H.264 of several slices sets for nothing without
  // it.
  codec->err_recognition = AV_EF_EXPLODE | AV_EF_CRCCHECK;
  if (const int error = libav().avcodec_open2(codec.get(), decoder, nullptr); error < 0) fail_with("is damaged", error);
  decoded = owned<FramePointer>(libav().av_frame_alloc());
}

/// The packet to start with for a frame: the last key frame before it. Whatever is shown before a key frame may need
/// what is older, so a frame counts from the last one that is shown no later.
std::size_t VideoFile::State::key_packet_of(std::size_t index) const {
  if (!has_times || !may_seek) return 0;
  for (std::size_t packet = frames[index].packet; packet > 0; --packet) {
    const AVPacket& candidate = *packets[packet];
    if ((candidate.flags & AV_PKT_FLAG_KEY) && candidate.pts <= frames[index].time) return packet;
  }
  return 0;
}

void VideoFile::State::start_at(std::size_t packet) {
  libav().avcodec_flush_buffers(codec.get());
  first_packet = next_packet = packet;
  num_decoded = 0;
}

/// Decodes one frame into `decoded`; false behind the last one.
bool VideoFile::State::next_frame() {
  for (;;) {
    int error = libav().avcodec_receive_frame(codec.get(), decoded.get());
    if (error == 0) {
      ++num_decoded;
      if (decoded->decode_error_flags != 0 || (decoded->flags & AV_FRAME_FLAG_CORRUPT))
        fail("is damaged: a frame is incomplete; send a whole file");
      return true;
    }
    if (error == AVERROR_EOF) return false;
    if (error != AVERROR(EAGAIN)) fail_with("is damaged", error);
    // Behind the last packet, nullptr asks for the frames that are still held back.
    error =
        libav().avcodec_send_packet(codec.get(), next_packet < packets.size() ? packets[next_packet].get() : nullptr);
    if (error < 0 && error != AVERROR_EOF) fail_with("is damaged", error);
    ++next_packet;
  }
}

/// Leaves frame `index` in `decoded`; it lies behind the one that is there.
void VideoFile::State::decode(std::size_t index) {
  const std::size_t key_packet = key_packet_of(index);
  if (key_packet >= next_packet) start_at(key_packet);
  try {
    advance_to(index);
  } catch (const Error&) {
    if (first_packet == 0) throw;
    // Not every key frame is one to start at: of an open group of pictures, the first ones shown need what is older.
    may_seek = false;
    start_at(0);
    advance_to(index);
  }
}

void VideoFile::State::advance_to(std::size_t index) {
  while (next_frame()) {
    if (!has_times) {
      if (num_decoded == static_cast<std::int64_t>(index) + 1) return;
      continue;
    }
    if (decoded->pts == frames[index].time) return;
    if (decoded->pts > frames[index].time) break;
  }
  fail(fmt::format("is damaged: frame {} of {} does not come out of the decoder; send a whole file", index,
                   frames.size()));
}

Picture VideoFile::State::to_picture() {
  const AVFrame& frame = *decoded;
  if (frame.width <= 0 || frame.height <= 0 || frame.height > limits.max_pixels / frame.width)
    fail(fmt::format("has a frame of {} x {} pixels; send a whole file", frame.width, frame.height));
  scaler.reset(libav().sws_getCachedContext(scaler.release(), frame.width, frame.height, AVPixelFormat(frame.format),
                                            frame.width, frame.height, AV_PIX_FMT_RGB24, SWS_BILINEAR, nullptr, nullptr,
                                            nullptr));
  if (!scaler) fail("has a pixel format that libswscale does not read; convert it");
  const bool is_full_range = frame.color_range == AVCOL_RANGE_JPEG || frame.format == AV_PIX_FMT_YUVJ420P ||
                             frame.format == AV_PIX_FMT_YUVJ422P || frame.format == AV_PIX_FMT_YUVJ444P;
  constexpr int kOne = 1 << 16;  // contrast and saturation of 1
  const int* coefficients = libav().sws_getCoefficients(frame.colorspace);
  // Fails where there is nothing to set: the frame is RGB already.
  static_cast<void>(
      libav().sws_setColorspaceDetails(scaler.get(), coefficients, is_full_range, coefficients, 1, 0, kOne, kOne));

  // libswscale writes whole vectors, past the end of an unpadded row.
  if (!converted || converted->width != frame.width || converted->height != frame.height) {
    converted = owned<FramePointer>(libav().av_frame_alloc());
    converted->format = AV_PIX_FMT_RGB24;
    converted->width = frame.width;
    converted->height = frame.height;
    if (libav().av_frame_get_buffer(converted.get(), 0) < 0) throw std::bad_alloc();
  }
  if (libav().sws_scale(scaler.get(), frame.data, frame.linesize, 0, frame.height, converted->data,
                        converted->linesize) != frame.height)
    fail("has a frame that libswscale does not convert; convert the file");

  Picture picture{frame.height, frame.width, {}};
  picture.rgb.resize(static_cast<std::size_t>(picture.height * picture.row_bytes()));
  for (std::int64_t y = 0; y < picture.height; ++y)
    std::memcpy(picture.row(y), converted->data[0] + y * converted->linesize[0],
                static_cast<std::size_t>(picture.row_bytes()));
  return picture;
}

VideoFile::VideoFile(std::span<const std::byte> file, const MediaLimits& limits) : state_(std::make_unique<State>()) {
  state_->limits = limits;
  state_->open(file);
  state_->read_packets();
  state_->list_frames();
  state_->open_codec();
}

VideoFile::~VideoFile() = default;

std::int64_t VideoFile::num_frames() const {
  return static_cast<std::int64_t>(state_->frames.size());
}

double VideoFile::fps() const {
  return state_->fps;
}

void VideoFile::read(std::span<const std::int64_t> indices,
                     const std::function<void(std::size_t, const Picture&)>& sink) {
  state_->start_at(0);
  Picture picture;
  std::int64_t previous = -1;
  for (std::size_t place = 0; place < indices.size(); ++place) {
    const std::int64_t index = indices[place];
    if (index < 0 || index >= num_frames() || index < previous)
      throw Error(ErrorCode::kInternal,
                  fmt::format("media: frame {} of {} is asked for after {}", index, num_frames(), previous));
    if (index != previous) {
      const std::int64_t height = picture.height, width = picture.width;
      state_->decode(static_cast<std::size_t>(index));
      picture = state_->to_picture();
      if (place > 0 && (picture.height != height || picture.width != width))
        fail(fmt::format("changes its size at frame {} from {} x {} to {} x {} pixels; send frames of one size", index,
                         width, height, picture.width, picture.height));
    }
    previous = index;
    sink(place, picture);
  }
}

void fail_damaged_at(std::size_t byte, const char* what) {
  fail(fmt::format("is damaged at byte {}: {}; send a whole file", byte, what));
}

}  // namespace treble
