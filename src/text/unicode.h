#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace treble {

/// What the tokenizer asks about a character, as bits of one byte. None of the first four: a symbol.
enum CharBits : std::uint8_t {
  kLetter = 1 << 0,    ///< general category L*
  kMark = 1 << 1,      ///< M*
  kNumber = 1 << 2,    ///< N*
  kSpace = 1 << 3,     ///< the White_Space property
  kNfcYes = 1 << 4,    ///< may stand in NFC text wherever its combining class allows
  kNfcInert = 1 << 5,  ///< kNfcYes, a starter, and never joined to what stands before it: NFC restarts here
};

/// CharBits of every code point, Unicode as utf8proc knows it.
/// One byte each, 1.1 MB, so that a look-up is one load; a text touches only the few pages of its scripts.
class UnicodeTable {
 public:
  /// The only instance, made on first use.
  static const UnicodeTable& instance();

  /// @param code_point  at most U+10FFFF
  std::uint8_t operator[](char32_t code_point) const { return bits_[code_point]; }

 private:
  UnicodeTable();
  std::unique_ptr<std::uint8_t[]> bits_;
};

/// A character of a text and the bytes it takes.
struct Character {
  char32_t code_point;
  std::size_t num_bytes;
};

/// The character that begins at text[at]. The text is valid UTF-8 and at is the border of a character in it.
inline Character character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[at + i])); };
  const char32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xE0) return {(first & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (first < 0xF0) return {(first & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(first & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
}

}  // namespace treble
