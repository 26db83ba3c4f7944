#include "cli/text_width.h"

#include <utf8proc.h>

#include <algorithm>

namespace treble::cli {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD
constexpr std::string_view kEllipsis = "\xe2\x80\xa6";     // U+2026

/// One character at the front of the text: its code point, or -1, and its bytes.
struct Character {
  utf8proc_int32_t code_point = -1;
  std::string_view bytes;
};

Character front_of(std::string_view text) {
  Character front;
  const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                       static_cast<utf8proc_ssize_t>(text.size()), &front.code_point);
  front.bytes = text.substr(0, length > 0 ? static_cast<std::size_t>(length) : 1);
  if (length <= 0) front.code_point = -1;
  return front;
}

bool reorders_line(const utf8proc_property_t& property) {
  switch (property.bidi_class) {
    case UTF8PROC_BIDI_CLASS_LRE:
    case UTF8PROC_BIDI_CLASS_LRO:
    case UTF8PROC_BIDI_CLASS_RLE:
    case UTF8PROC_BIDI_CLASS_RLO:
    case UTF8PROC_BIDI_CLASS_PDF:
    case UTF8PROC_BIDI_CLASS_LRI:
    case UTF8PROC_BIDI_CLASS_RLI:
    case UTF8PROC_BIDI_CLASS_FSI:
    case UTF8PROC_BIDI_CLASS_PDI:
      return true;
    default:
      return false;
  }
}

std::string_view shown(const Character& character) {
  if (character.code_point < 0) return kReplacement;
  const utf8proc_property_t& property = *utf8proc_get_property(character.code_point);
  switch (property.category) {
    case UTF8PROC_CATEGORY_CC: {
      const bool is_blank = character.code_point >= '\t' && character.code_point <= '\r';
      return is_blank ? " " : kReplacement;
    }
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return " ";
    default:
      return reorders_line(property) ? kReplacement : character.bytes;
  }
}

int width_of(const Character& character) {
  return character.code_point < 0 ? 1 : std::max(0, utf8proc_charwidth(character.code_point));
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Character front = front_of(text);
    out += shown(front);
    text.remove_prefix(front.bytes.size());
  }
  return out;
}

int display_width(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    const Character front = front_of(text);
    width += width_of(front);
    text.remove_prefix(front.bytes.size());
  }
  return width;
}

std::string cut_to_width(std::string_view text, int width) {
  if (display_width(text) <= width) return std::string(text);
  if (width < 1) return "";
  std::string out;
  int used = 1;  // the ellipsis
  while (!text.empty()) {
    const Character front = front_of(text);
    used += width_of(front);
    if (used > width) break;
    out += front.bytes;
    text.remove_prefix(front.bytes.size());
  }
  return out.append(kEllipsis);
}

}  // namespace treble::cli
