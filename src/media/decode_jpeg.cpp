#include <cstdio>  // jpeglib.h needs FILE

#include <jerror.h>
#include <jpeglib.h>

#include <csetjmp>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "media/picture_formats.h"

namespace treble {
namespace {

constexpr PictureFormat kFormat = PictureFormat::kJpeg;
// Encoders write about ten; a hostile file of a few kilobytes can ask for thousands of passes over 16 megapixels.
constexpr int kMostScans = 100;

/// What libjpeg's callbacks reach. libjpeg leaves a failed call by longjmp, which runs no destructors: the functions
/// that it may leave hold only plain values, everything else lives here.
struct Reader {
  jpeg_decompress_struct jpeg = {};
  jpeg_error_mgr errors = {};
  jpeg_source_mgr source = {};
  jpeg_progress_mgr progress = {};
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = "";

  ~Reader() { jpeg_destroy_decompress(&jpeg); }
};

Reader& reader_of(j_common_ptr jpeg) {
  return *static_cast<Reader*>(jpeg->client_data);
}

[[noreturn]] void fail(j_common_ptr jpeg) {
  jpeg->err->format_message(jpeg, reader_of(jpeg).message);
  std::longjmp(reader_of(jpeg).jump, 1);
}

/// libjpeg goes on with gray blocks where the coded data are damaged; we stop. Harmless are bytes between two segments
/// and remarks on versions, which old cameras and editors produce.
void judge_warning(j_common_ptr jpeg, int level) {
  if (level >= 0) return;
  switch (jpeg->err->msg_code) {
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_ADOBE_XFORM:
    case JWRN_JFIF_MAJOR:
    case JWRN_TOO_MUCH_DATA:
    case JWRN_BOGUS_PROGRESSION:
      return;
    default:
      fail(jpeg);
  }
}

void count_scans(j_common_ptr jpeg) {
  if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number <= kMostScans) return;
  std::snprintf(reader_of(jpeg).message, JMSG_LENGTH_MAX, "it has more than %d scans", kMostScans);
  std::longjmp(reader_of(jpeg).jump, 1);
}

boolean refuse_to_refill(j_decompress_ptr jpeg) {
  Reader& reader = reader_of(reinterpret_cast<j_common_ptr>(jpeg));
  std::snprintf(reader.message, JMSG_LENGTH_MAX, "it ends in the middle");
  std::longjmp(reader.jump, 1);
}

void skip_bytes(j_decompress_ptr jpeg, long count) {
  if (count <= 0) return;
  if (static_cast<std::size_t>(count) > jpeg->src->bytes_in_buffer) refuse_to_refill(jpeg);
  jpeg->src->next_input_byte += count;
  jpeg->src->bytes_in_buffer -= static_cast<std::size_t>(count);
}

/// False: see message.
bool read_header(Reader& reader, std::span<const std::byte> file) {
  reader.jpeg.err = jpeg_std_error(&reader.errors);
  reader.errors.error_exit = fail;
  reader.errors.emit_message = judge_warning;
  reader.errors.output_message = [](j_common_ptr) {};
  reader.jpeg.client_data = &reader;
  if (setjmp(reader.jump)) return false;
  jpeg_create_decompress(&reader.jpeg);
  reader.source.next_input_byte = reinterpret_cast<const JOCTET*>(file.data());
  reader.source.bytes_in_buffer = file.size();
  reader.source.init_source = [](j_decompress_ptr) {};
  reader.source.fill_input_buffer = refuse_to_refill;
  reader.source.skip_input_data = skip_bytes;
  reader.source.resync_to_restart = jpeg_resync_to_restart;
  reader.source.term_source = [](j_decompress_ptr) {};
  reader.jpeg.src = &reader.source;
  reader.progress.progress_monitor = count_scans;
  reader.jpeg.progress = &reader.progress;
  jpeg_read_header(&reader.jpeg, TRUE);
  return true;
}

/// The colour space of what libjpeg writes: RGB, or gray or CMYK, which write_rgb() turns into RGB.
bool start_pixels(Reader& reader) {
  if (setjmp(reader.jump)) return false;
  switch (reader.jpeg.num_components) {
    case 1:
      reader.jpeg.out_color_space = JCS_GRAYSCALE;
      break;
    case 3:
      reader.jpeg.out_color_space = JCS_RGB;
      break;
    default:
      reader.jpeg.out_color_space = JCS_CMYK;
      break;
  }
  jpeg_start_decompress(&reader.jpeg);
  return true;
}

bool read_row(Reader& reader, JSAMPROW row) {
  if (setjmp(reader.jump)) return false;
  jpeg_read_scanlines(&reader.jpeg, &row, 1);
  return true;
}

bool finish(Reader& reader) {
  if (setjmp(reader.jump)) return false;
  jpeg_finish_decompress(&reader.jpeg);
  return true;
}

/// a * b / 255, rounded, as Pillow computes it.
int scaled(int a, int b) {
  const int product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

void write_rgb(const std::uint8_t* from, int num_components, std::int64_t width, std::uint8_t* rgb) {
  for (std::int64_t x = 0; x < width; ++x) {
    for (int channel = 0; channel < 3; ++channel) {
      if (num_components == 1) {
        rgb[3 * x + channel] = from[x];
      } else {
        // Adobe's files hold the inverse of the inks, 255 where there is none.
        const int ink = 255 - from[4 * x + channel], light = from[4 * x + 3];
        rgb[3 * x + channel] = static_cast<std::uint8_t>(light - scaled(ink, light));
      }
    }
  }
}

}  // namespace

Picture decode_jpeg(std::span<const std::byte> file, const MediaLimits& limits) {
  Reader reader;
  const auto check = [&reader](bool is_good) {
    if (!is_good) fail_damaged(kFormat, reader.message);
  };
  check(read_header(reader, file));
  const int num_components = reader.jpeg.num_components;
  if (num_components != 1 && num_components != 3 && num_components != 4)
    fail_damaged(kFormat, fmt::format("it has {} colour components, expected 1, 3 or 4", num_components));
  Picture picture = make_picture(kFormat, reader.jpeg.image_height, reader.jpeg.image_width, limits);

  check(start_pixels(reader));
  std::vector<std::uint8_t> row(num_components == 3 ? 0 : static_cast<std::size_t>(num_components * picture.width));
  for (std::int64_t y = 0; y < picture.height; ++y) {
    check(read_row(reader, num_components == 3 ? picture.row(y) : row.data()));
    if (num_components != 3) write_rgb(row.data(), num_components, picture.width, picture.row(y));
  }
  check(finish(reader));
  return picture;
}

}  // namespace treble
