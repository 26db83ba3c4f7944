#include "text/unicode.h"

#include <doctest/doctest.h>

namespace treble {
namespace {

int char_class(char32_t c) {
  return UnicodeTable::instance()[c] & (kLetter | kMark | kNumber | kSpace);
}

}  // namespace

TEST_CASE("unicode: exactly the 25 characters of White_Space are spaces") {
  const std::u32string expected =
      U"\x09\x0A\x0B\x0C\x0D\x20\x85\xA0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200A\u2028"
      U"\u2029\u202F\u205F\u3000";
  std::u32string spaces;
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (char_class(c) == kSpace) spaces += c;
  }
  CHECK(spaces == expected);
}

TEST_CASE("unicode: letters, marks, numbers and symbols follow the general category") {
  for (const char32_t c : U"aZ\u00e9\u017f\u01c5\u02b0\u05d0\u0939\u4e2d\uac00\U00020000") {
    if (c) CHECK(char_class(c) == kLetter);
  }
  for (const char32_t c : U"\u0301\u093f\u093e\u20e3\ufe0f\u0e48") {
    if (c) CHECK(char_class(c) == kMark);
  }
  for (const char32_t c : U"0\u0663\u2167\u00bd\u00b2\U0001D7D8") {
    if (c) CHECK(char_class(c) == kNumber);
  }
  for (const char32_t c : U"'_\u200b\ufeff\u200d\u2b50\U0001F602\x01\x1c\u0378\U0010FFFF") {
    if (c) CHECK(char_class(c) == 0);
  }
}

TEST_CASE("unicode: characters of one to four bytes are decoded") {
  const std::string_view text = "a\u00e9\u4e2d\U0001F602";
  std::u32string decoded;
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    decoded += c.code_point;
    at += c.num_bytes;
  }
  CHECK(decoded == U"a\u00e9\u4e2d\U0001F602");
}

}  // namespace treble
