#include "text/pretokenizer.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace treble {
namespace {

using Pieces = std::vector<std::string>;

Pieces split(SplitPattern pattern, std::string_view text) {
  const Pretokenizer pretokenizer(pattern);
  Pieces pieces;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = pretokenizer.piece_end(text, begin);
    REQUIRE(end > begin);
    REQUIRE(end <= text.size());
    pieces.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return pieces;
}

struct Case {
  std::string_view text;
  Pieces marks;
  Pieces plain = {};  // empty: as with marks
};

}  // namespace

TEST_CASE("pretokenizer: pieces are those of the regular expressions") {
  const Case cases[] = {
      {"don't DON'T we'LL I'm x'Re", {"don", "'t", " DON", "'T", " we", "'LL", " I", "'m", " x", "'Re"}},
      {"12345 3.14", {"1", "2", "3", "4", "5", " ", "3", ".", "1", "4"}},
      {"  line one\n\n\tline two  \n", {" ", " line", " one", "\n\n", "\tline", " two", "  \n"}},
      {"a\r\n\r\nb", {"a", "\r\n\r\n", "b"}},
      {"hello  world   !", {"hello", " ", " world", "  ", " !"}},
      {"foo(bar);\n\n  baz", {"foo", "(bar", ");\n\n", " ", " baz"}},
      {"_snake_case  __x", {"_snake", "_case", " ", " __", "x"}},
      {"\t\tif (x)\n", {"\t", "\tif", " (", "x", ")\n"}},
      {"a   ", {"a", "   "}},
      {"   \n  x", {"   \n", " ", " x"}},
      {"\n\n", {"\n\n"}},
      {"'s 't'", {"'s", " '", "t", "'"}},
      {"C'est l'\u00e9t\u00e9", {"C", "'est", " l", "'\u00e9t\u00e9"}},
      {R"({"a":1,"b":[true,null]})", {"{\"", "a", "\":", "1", ",\"", "b", "\":[", "true", ",null", "]}"}},
      {"\u00a0x\u3000y\u200bz", {"\u00a0x", "\u3000y", "\u200bz"}},
      {"\u0085next\u2028line", {"\u0085next", "\u2028line"}},
      {"\u00bd \u2167 \u0663", {"\u00bd", " ", "\u2167", " ", "\u0663"}},
      {"a\u0301bc e\u0301", {"a\u0301bc", " e\u0301"}, {"a", "\u0301bc", " e", "\u0301"}},
      {" \u0301x", {" \u0301x"}, {" \u0301", "x"}},
      {"\u0939\u093f\u0902\u0926\u0940 \u092d\u093e\u0937\u093e",
       {"\u0939\u093f\u0902\u0926\u0940", " \u092d\u093e\u0937\u093e"},
       {"\u0939", "\u093f\u0902", "\u0926", "\u0940", " \u092d", "\u093e\u0937", "\u093e"}},
      {"\u0e0a\u0e48\u0e27\u0e22", {"\u0e0a\u0e48\u0e27\u0e22"}, {"\u0e0a", "\u0e48\u0e27\u0e22"}},
      {"\u2b50\ufe0f\u2b50\ufe0f\u2b50\ufe0f ok",
       {"\u2b50\ufe0f", "\u2b50\ufe0f", "\u2b50\ufe0f", " ok"},
       {"\u2b50\ufe0f\u2b50\ufe0f\u2b50\ufe0f", " ok"}},
      {" \u2b50\ufe0f\u2b50\ufe0f", {" \u2b50", "\ufe0f", "\u2b50\ufe0f"}, {" \u2b50\ufe0f\u2b50\ufe0f"}},
      {"x\u200d\u2640\ufe0fy", {"x", "\u200d\u2640", "\ufe0fy"}, {"x", "\u200d\u2640\ufe0f", "y"}},
      {"1\ufe0f\u20e3 x", {"1", "\ufe0f\u20e3", " x"}},
  };
  for (const Case& each : cases) {
    CAPTURE(each.text);
    CHECK(split(SplitPattern::kMarks, each.text) == each.marks);
    CHECK(split(SplitPattern::kPlain, each.text) == (each.plain.empty() ? each.marks : each.plain));
  }
}

TEST_CASE("pretokenizer: English endings are recognised in either case, and no further letters are") {
  for (const SplitPattern pattern : {SplitPattern::kMarks, SplitPattern::kPlain}) {
    CHECK(split(pattern, "'sound") == Pieces{"'s", "ound"});
    CHECK(split(pattern, "it'\u017f") == Pieces{"it", "'\u017f"});
    CHECK(split(pattern, "'lL'vE'RE'D") == Pieces{"'lL", "'vE", "'RE", "'D"});
    CHECK(split(pattern, "'l'r've") == Pieces{"'l", "'r", "'ve"});
    CHECK(split(pattern, "'a ''s '") == Pieces{"'a", " ''", "s", " '"});
    CHECK(split(pattern, "\u2019s") == Pieces{"\u2019s"});
  }
}

TEST_CASE("pretokenizer: of blanks only the last goes to the next piece") {
  for (const SplitPattern pattern : {SplitPattern::kMarks, SplitPattern::kPlain}) {
    CHECK(split(pattern, "   1") == Pieces{"  ", " ", "1"});
    CHECK(split(pattern, " \u00a0!") == Pieces{" ", "\u00a0", "!"});
    CHECK(split(pattern, "\u3000\u3000\u3000a") == Pieces{"\u3000\u3000", "\u3000a"});
    CHECK(split(pattern, " \r \n \n ") == Pieces{" \r \n \n", " "});
    CHECK(split(pattern, "\na") == Pieces{"\n", "a"});
    CHECK(split(pattern, "!\r\n\n a") == Pieces{"!\r\n\n", " a"});
    CHECK(split(pattern, "\v\n!") == Pieces{"\v\n", "!"});
  }
}

TEST_CASE("pretokenizer: the two patterns are told apart by their text, others are not known") {
  const std::string plain =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+)"
      R"(|\s+(?!\S)|\s+)";
  const std::string marks =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+)"
      R"(|\s+(?!\S)|\s+)";
  CHECK(parse_split_pattern(plain) == SplitPattern::kPlain);
  CHECK(parse_split_pattern(marks) == SplitPattern::kMarks);
  CHECK(parse_split_pattern(plain + "|x") == std::nullopt);
  CHECK(parse_split_pattern("") == std::nullopt);
}

}  // namespace treble
