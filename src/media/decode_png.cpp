#include <png.h>

#include <csetjmp>
#include <cstring>
#include <string>
#include <vector>

#include "media/picture_formats.h"

namespace treble {
namespace {

constexpr PictureFormat kFormat = PictureFormat::kPng;
constexpr std::size_t kMostChunkBytes = std::size_t{8} << 20;  // of text, profiles and the like, once expanded
constexpr std::uint32_t kMostChunks = 1000;                    // that are kept; none of them is read here

/// What libpng's callbacks reach. libpng leaves a failed call by longjmp, which runs no destructors: the functions that
/// it may leave hold only plain values, everything else lives here.
struct Reader {
  std::span<const std::byte> file;
  std::size_t position = 0;
  png_structp png = nullptr;
  png_infop info = nullptr;
  char message[128] = "";

  // From the header.
  std::int64_t height = 0, width = 0;
  int bit_depth = 0, color_type = 0, num_passes = 1;
  std::size_t row_bytes = 0;  ///< of a decoded row, before it is made RGB
  Palette palette;

  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
};

void keep_message(png_structp png, png_const_charp message) {
  auto* reader = static_cast<Reader*>(png_get_error_ptr(png));
  std::strncpy(reader->message, message, sizeof reader->message - 1);
  png_longjmp(png, 1);
}

void ignore_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep out, std::size_t count) {
  auto* reader = static_cast<Reader*>(png_get_io_ptr(png));
  if (count > reader->file.size() - reader->position) png_error(png, "it ends in the middle");
  std::memcpy(out, reader->file.data() + reader->position, count);
  reader->position += count;
}

/// Everything up to the first pixel. False: see message.
bool read_header(Reader& reader) {
  if (setjmp(png_jmpbuf(reader.png))) return false;
  png_set_read_fn(reader.png, &reader, read_bytes);
  png_set_chunk_malloc_max(reader.png, kMostChunkBytes);
  png_set_chunk_cache_max(reader.png, kMostChunks);
  // Our own limit counts; libpng's of a million pixels a side would refuse thin pictures with a less clear message.
  png_set_user_limits(reader.png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  // Of the ancillary chunks none changes what is returned.
  png_set_keep_unknown_chunks(reader.png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_read_info(reader.png, reader.info);
  reader.height = png_get_image_height(reader.png, reader.info);
  reader.width = png_get_image_width(reader.png, reader.info);
  reader.bit_depth = png_get_bit_depth(reader.png, reader.info);
  reader.color_type = png_get_color_type(reader.png, reader.info);
  return true;
}

/// Asks libpng for one byte per index or 8-bit sample, two per 16-bit sample; what is left is done by write_rgb().
bool start_pixels(Reader& reader) {
  if (setjmp(png_jmpbuf(reader.png))) return false;
  if (reader.color_type == PNG_COLOR_TYPE_PALETTE) {
    png_colorp entries = nullptr;
    int num_entries = 0;
    if (!png_get_PLTE(reader.png, reader.info, &entries, &num_entries)) png_error(reader.png, "it has no palette");
    for (int index = 0; index < num_entries && index < 256; ++index) {
      reader.palette.rgb[index][0] = entries[index].red;
      reader.palette.rgb[index][1] = entries[index].green;
      reader.palette.rgb[index][2] = entries[index].blue;
    }
    png_set_packing(reader.png);
    png_set_check_for_invalid_index(reader.png, 0);
  } else if (reader.color_type == PNG_COLOR_TYPE_GRAY && reader.bit_depth < 8) {
    png_set_expand_gray_1_2_4_to_8(reader.png);
  }
  reader.num_passes = png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  reader.row_bytes = png_get_rowbytes(reader.png, reader.info);
  return true;
}

/// One row in every pass but the last; an interlaced picture is read into rows that stay, `stride` bytes apart.
bool read_rows(Reader& reader, png_bytep rows, std::int64_t count, std::size_t stride) {
  if (setjmp(png_jmpbuf(reader.png))) return false;
  for (std::int64_t y = 0; y < count; ++y)
    png_read_row(reader.png, rows + static_cast<std::size_t>(y) * stride, nullptr);
  return true;
}

/// Reads on to IEND: the checksum of the last data chunk stands behind the last row.
bool read_end(Reader& reader) {
  if (setjmp(png_jmpbuf(reader.png))) return false;
  png_read_end(reader.png, nullptr);
  return true;
}

void write_rgb(const Reader& reader, const std::uint8_t* from, std::uint8_t* rgb) {
  const std::int64_t width = reader.width;
  const bool is_wide = reader.bit_depth == 16;
  const auto expand_gray = [&](std::int64_t step, const auto& level) {
    for (std::int64_t x = 0; x < width; ++x) {
      const std::uint8_t gray = level(from + x * step);
      for (int channel = 0; channel < 3; ++channel) rgb[3 * x + channel] = gray;
    }
  };
  const auto take_colors = [&](std::int64_t step, std::int64_t sample) {
    for (std::int64_t x = 0; x < width; ++x)
      for (std::int64_t channel = 0; channel < 3; ++channel) rgb[3 * x + channel] = from[x * step + channel * sample];
  };
  const auto first_byte = [](const std::uint8_t* sample) { return *sample; };
  // Samples of 16 bits have their upper byte first.
  const auto cut_off = [](const std::uint8_t* sample) {
    return sample[0] == 0 ? sample[1] : static_cast<std::uint8_t>(255);
  };
  switch (reader.color_type) {
    case PNG_COLOR_TYPE_PALETTE:
      for (std::int64_t x = 0; x < width; ++x) std::memcpy(rgb + 3 * x, reader.palette.rgb[from[x]], 3);
      break;
    case PNG_COLOR_TYPE_GRAY:
      if (is_wide) {
        expand_gray(2, cut_off);
      } else {
        expand_gray(1, first_byte);
      }
      break;
    case PNG_COLOR_TYPE_GRAY_ALPHA:
      expand_gray(is_wide ? 4 : 2, first_byte);
      break;
    case PNG_COLOR_TYPE_RGB:
      take_colors(is_wide ? 6 : 3, is_wide ? 2 : 1);
      break;
    default:  // RGB and alpha
      take_colors(is_wide ? 8 : 4, is_wide ? 2 : 1);
      break;
  }
}

}  // namespace

Picture decode_png(std::span<const std::byte> file, const MediaLimits& limits) {
  Reader reader;
  reader.file = file;
  reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, keep_message, ignore_warning);
  reader.info = reader.png ? png_create_info_struct(reader.png) : nullptr;
  if (!reader.info) throw std::bad_alloc();

  const auto check = [&reader](bool is_good) {
    if (!is_good) fail_damaged(kFormat, reader.message);
  };
  check(read_header(reader));
  Picture picture = make_picture(kFormat, reader.height, reader.width, limits);
  check(start_pixels(reader));
  if (reader.num_passes == 1) {
    std::vector<std::uint8_t> row(reader.row_bytes);
    for (std::int64_t y = 0; y < reader.height; ++y) {
      check(read_rows(reader, row.data(), 1, 0));
      write_rgb(reader, row.data(), picture.row(y));
    }
  } else {
    std::vector<std::uint8_t> rows(reader.row_bytes * static_cast<std::size_t>(reader.height));
    for (int pass = 0; pass < reader.num_passes; ++pass)
      check(read_rows(reader, rows.data(), reader.height, reader.row_bytes));
    for (std::int64_t y = 0; y < reader.height; ++y)
      write_rgb(reader, rows.data() + static_cast<std::size_t>(y) * reader.row_bytes, picture.row(y));
  }
  check(read_end(reader));
  return picture;
}

}  // namespace treble
