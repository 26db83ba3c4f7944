#include "text/nfc.h"

#include <doctest/doctest.h>
#include <utf8proc.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "text/unicode.h"

namespace treble {
namespace {

std::string nfc(std::string_view text) {
  std::string storage = "left over";
  return std::string(to_nfc(text, storage));
}

/// utf8proc's own, slow on long runs of marks.
std::string plain_nfc(const std::string& text) {
  auto* composed = utf8proc_NFC(reinterpret_cast<const utf8proc_uint8_t*>(text.c_str()));
  std::string result(reinterpret_cast<const char*>(composed));
  std::free(composed);
  return result;
}

std::string encode(char32_t c) {
  utf8proc_uint8_t bytes[4];
  const auto num_bytes = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), bytes);
  return {reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(num_bytes)};
}

}  // namespace

TEST_CASE("nfc: text that is NFC already is not copied") {
  for (const std::string_view text :
       {"", "a", "only ASCII, longer than a block", "caf\u00e9 \u4e2d\u6587 \ud55c\uad6d\uc5b4", "\u064e leading mark",
        "\u05d0\u05b8\u05bc ordered marks", "\u0939\u093f\u0928\u094d\u0926\u0940", "\u2b50\ufe0f"}) {
    CAPTURE(text);
    std::string storage;
    CHECK(to_nfc(text, storage).data() == text.data());
    CHECK(to_nfc(text, storage) == text);
  }
}

TEST_CASE("nfc: letters and marks compose, marks are put in order") {
  CHECK(nfc("e\u0301") == "\u00e9");
  CHECK(nfc("cafe\u0301s, plain text after it") == "caf\u00e9s, plain text after it");
  CHECK(nfc("o\u0302\u0323") == "\u1ed9");
  CHECK(nfc("q\u0301\u0323") == "q\u0323\u0301");
  CHECK(nfc("\u0301\u0323") == "\u0323\u0301");
  CHECK(nfc(">\u0338") == "\u226f");
  CHECK(nfc("a\u0301a\u0301") == "\u00e1\u00e1");
}

TEST_CASE("nfc: Hangul jamo compose to syllables") {
  CHECK(nfc("\u1112\u1161\u11ab") == "\ud55c");
  CHECK(nfc("\ud558\u11ab") == "\ud55c");
  CHECK(nfc("\ud55c\u11ab") == "\ud55c\u11ab");
}

TEST_CASE("nfc: singletons are replaced, excluded compositions stay apart") {
  CHECK(nfc("\u212b \u2126") == "\u00c5 \u03a9");
  CHECK(nfc("\u0958") == "\u0915\u093c");
  CHECK(nfc("\uf900\U0002f800") == "\u8c48\u4e3d");
  CHECK(nfc("\u0344") == "\u0308\u0301");
}

TEST_CASE("nfc: compatibility characters stay") {
  CHECK(nfc("\uff21\ufb01\u00b2\u2460") == "\uff21\ufb01\u00b2\u2460");
}

TEST_CASE("nfc: every code point that is not plainly inert, between others, agrees with utf8proc") {
  for (char32_t c = 1; c <= 0x10FFFF; ++c) {
    if (c == 0xD800) c = 0xE000;
    if ((UnicodeTable::instance()[c] & kNfcInert) && c % 16 != 0) continue;  // a sample of the others
    const std::string one = encode(c);
    const std::string text = "e" + one + "\u0323\u0301" + one + "\u0315\u0327a" + one;
    if (nfc(text) != plain_nfc(text)) FAIL_CHECK("code point " << static_cast<unsigned>(c));
  }
}

TEST_CASE("nfc: random runs of letters, marks and jamo agree with utf8proc") {
  std::mt19937 random(1);
  std::vector<std::string> characters;
  for (const char32_t c :
       U"abcdefgh e\u00e9\u1ea1\u0301\u0323\u0327\u0338\u093c\u0915\u0958\u09c7\u09be\u1112\u1161"
       U"\u11ab\ud558\uac00\u0308\u0344\u0f71\u0f72\u0f73\u4e2d\U0001D15E\U000110BA\U00011099") {
    if (c) characters.push_back(encode(c));
  }
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    const std::size_t length = random() % 24;
    for (std::size_t i = 0; i < length; ++i) text += characters[random() % characters.size()];
    CAPTURE(text);
    CHECK(nfc(text) == plain_nfc(text));
  }
}

TEST_CASE("nfc: a long run of marks of alternating class is sorted") {
  constexpr int kCount = 50'000;
  std::string text = "q";
  std::string expected = "q";
  for (int i = 0; i < kCount; ++i) text += "\u0301\u0323";
  for (int i = 0; i < kCount; ++i) expected += "\u0323";
  for (int i = 0; i < kCount; ++i) expected += "\u0301";
  CHECK(nfc(text) == expected);
}

}  // namespace treble
