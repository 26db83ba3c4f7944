#include "cli/text_width.h"

#include <doctest/doctest.h>

namespace treble::cli {
namespace {

TEST_CASE("display_width: wide characters take two columns, combining marks none") {
  CHECK(display_width("") == 0);
  CHECK(display_width("paid") == 4);
  CHECK(display_width("日本") == 4);
  CHECK(display_width("e\xcc\x81") == 1);  // e, U+0301
}

TEST_CASE("cut_to_width: what fits stays whole") {
  CHECK(cut_to_width("paid", 4) == "paid");
  CHECK(cut_to_width("日本", 4) == "日本");
}

TEST_CASE("cut_to_width: a cut never splits a character and never exceeds the width") {
  CHECK(cut_to_width("overdue", 4) == "ove…");
  CHECK(cut_to_width("日本語", 4) == "日…");
  CHECK(cut_to_width("日本語", 5) == "日本…");
  CHECK(cut_to_width("日本語", 1) == "…");
  CHECK(cut_to_width("日本語", 0).empty());
}

TEST_CASE("printable: line breaks become blanks, other controls and overrides a replacement") {
  CHECK(printable("a\tb\r\nc\xe2\x80\xa8"
                  "d") == "a b  c d");
  CHECK(printable("\x1b[31m\x7f\xc2\x9b") == "\xef\xbf\xbd[31m\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(printable("\xe2\x80\xae"
                  "abc") ==
        "\xef\xbf\xbd"
        "abc");  // U+202E, right-to-left override
  CHECK(printable("👩‍🔧 नमस्ते") == "👩‍🔧 नमस्ते");
}

TEST_CASE("printable: bytes that are not UTF-8 are replaced one by one") {
  CHECK(printable("a\xff\xc3") == "a\xef\xbf\xbd\xef\xbf\xbd");
}

}  // namespace
}  // namespace treble::cli
