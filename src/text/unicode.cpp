#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

namespace treble {
namespace {

constexpr char32_t kNumCodePoints = 0x110000;

std::uint8_t category_bits(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return kLetter;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return kMark;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return kNumber;
    // White_Space is all separators and the six controls below.
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return kSpace;
    default:
      return (c >= 0x09 && c <= 0x0D) || c == 0x85 ? kSpace : 0;
  }
}

/// The full canonical decomposition; empty if the character has none.
class Decomposition {
 public:
  explicit Decomposition(char32_t c) {
    int last_boundary = UTF8PROC_BOUNDCLASS_START;
    const utf8proc_ssize_t length = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), code_points_.data(),
                                                            code_points_.size(), UTF8PROC_DECOMPOSE, &last_boundary);
    if (length != 1 || code_points_[0] != static_cast<utf8proc_int32_t>(c)) length_ = length;
  }

  const utf8proc_int32_t* begin() const { return code_points_.data(); }
  const utf8proc_int32_t* end() const { return begin() + length_; }

  /// Whether composing it again gives the character it was made from.
  bool composes_to(char32_t c) const {
    std::array<utf8proc_int32_t, kMaxLength> composed = code_points_;
    const auto options = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    return utf8proc_normalize_utf32(composed.data(), length_, options) == 1 &&
           composed[0] == static_cast<utf8proc_int32_t>(c);
  }

 private:
  static constexpr std::size_t kMaxLength = 8;  // canonical decompositions have at most four characters
  std::array<utf8proc_int32_t, kMaxLength> code_points_{};
  utf8proc_ssize_t length_ = 0;
};

}  // namespace

const UnicodeTable& UnicodeTable::instance() {
  static const UnicodeTable table;
  return table;
}

UnicodeTable::UnicodeTable() : bits_(std::make_unique<std::uint8_t[]>(kNumCodePoints)) {
  for (char32_t c = 0; c < kNumCodePoints; ++c) {
    bits_[c] = category_bits(c) | kNfcYes;
    if (utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class == 0) bits_[c] |= kNfcInert;
  }
  // utf8proc lists no NFC_Quick_Check property, so it follows from the decompositions: a character that does not come
  // back from its own is never NFC; one that stands behind another in the rest may be joined to what precedes it.
  constexpr auto kNotNfc = static_cast<std::uint8_t>(~(kNfcYes | kNfcInert));
  for (char32_t c = 0; c < kNumCodePoints; ++c) {
    const Decomposition decomposition(c);
    if (decomposition.begin() == decomposition.end()) continue;
    if (decomposition.composes_to(c)) {
      std::for_each(decomposition.begin() + 1, decomposition.end(), [&](utf8proc_int32_t d) { bits_[d] &= kNotNfc; });
    } else {
      bits_[c] &= kNotNfc;
    }
  }
}

}  // namespace treble
