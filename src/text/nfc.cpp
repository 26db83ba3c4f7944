#include "text/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "text/unicode.h"

namespace treble {
namespace {

using CodePoints = std::vector<utf8proc_int32_t>;

int combining_class(utf8proc_int32_t c) {
  return utf8proc_get_property(c)->combining_class;
}

CodePoints decompose(std::string_view text) {
  CodePoints decomposed;
  std::array<utf8proc_int32_t, 8> one{};  // canonical decompositions have at most four characters
  for (std::size_t i = 0; i < text.size();) {
    const Character c = character_at(text, i);
    int last_boundary = UTF8PROC_BOUNDCLASS_START;
    const auto length = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c.code_point), one.data(), one.size(),
                                                UTF8PROC_DECOMPOSE, &last_boundary);
    decomposed.insert(decomposed.end(), one.data(), one.data() + length);
    i += c.num_bytes;
  }
  return decomposed;
}

/// Sorts each run of combining marks by combining class. (utf8proc's own ordering takes quadratic time.)
void order_marks(CodePoints& text) {
  const auto is_starter = [](utf8proc_int32_t c) { return combining_class(c) == 0; };
  const auto by_class = [](utf8proc_int32_t a, utf8proc_int32_t b) { return combining_class(a) < combining_class(b); };
  for (auto begin = text.begin(); begin != text.end();) {
    begin = std::find_if_not(begin, text.end(), is_starter);
    const auto end = std::find_if(begin, text.end(), is_starter);
    if (!std::is_sorted(begin, end, by_class)) std::stable_sort(begin, end, by_class);
    begin = end;
  }
}

void append_nfc(std::string_view text, std::string& out) {
  CodePoints code_points = decompose(text);
  order_marks(code_points);
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  const auto length =
      utf8proc_normalize_utf32(code_points.data(), static_cast<utf8proc_ssize_t>(code_points.size()), options);
  std::array<utf8proc_uint8_t, 4> bytes{};
  for (utf8proc_ssize_t i = 0; i < length; ++i) {
    const auto num_bytes = utf8proc_encode_char(code_points[static_cast<std::size_t>(i)], bytes.data());
    out.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(num_bytes));
  }
}

/// Whether text[at, at + 8) is ASCII, all of which is NFC.
bool is_ascii_block(std::string_view text, std::size_t at) {
  if (text.size() - at < sizeof(std::uint64_t)) return false;
  std::uint64_t block;
  std::memcpy(&block, text.data() + at, sizeof(block));
  return (block & 0x8080808080808080u) == 0;
}

}  // namespace

std::string_view to_nfc(std::string_view text, std::string& storage) {
  const UnicodeTable& table = UnicodeTable::instance();
  storage.clear();
  std::size_t done = 0;     // text[0, done) is in storage, in NFC
  std::size_t restart = 0;  // the last inert character: what stands before it and from it on do not interact
  int last_class = 0;       // combining class of the character before text[i]
  for (std::size_t i = 0; i < text.size();) {
    if (is_ascii_block(text, i)) {
      i += sizeof(std::uint64_t);
      restart = i - 1;
      last_class = 0;
      continue;
    }
    const Character c = character_at(text, i);
    const std::uint8_t bits = table[c.code_point];
    if (bits & kNfcInert) {
      restart = i;
      last_class = 0;
      i += c.num_bytes;
      continue;
    }
    const int mark_class = combining_class(static_cast<utf8proc_int32_t>(c.code_point));
    const bool in_order = mark_class == 0 || mark_class >= last_class;
    i += c.num_bytes;
    last_class = mark_class;
    if ((bits & kNfcYes) && in_order) continue;

    while (i < text.size()) {
      const Character next = character_at(text, i);
      if (table[next.code_point] & kNfcInert) break;
      i += next.num_bytes;
    }
    storage.append(text.substr(done, restart - done));
    append_nfc(text.substr(restart, i - restart), storage);
    done = restart = i;
    last_class = 0;
  }
  if (done == 0) return text;
  storage.append(text.substr(done));
  return storage;
}

}  // namespace treble
