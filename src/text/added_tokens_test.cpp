#include "text/added_tokens.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace treble {
namespace {

/// The tokens found in text, each as "position:content", joined by blanks.
std::string find_all(const AddedTokens& tokens, std::string_view text) {
  std::string found;
  for (std::size_t at = 0;;) {
    const AddedTokens::Match match = tokens.find(text, at);
    if (!match.token) {
      CHECK(match.begin == text.size());
      return found;
    }
    found += (found.empty() ? "" : " ") + std::to_string(match.begin) + ":" + match.token->content;
    at = match.begin + match.token->content.size();
  }
}

}  // namespace

TEST_CASE("added tokens: the leftmost is found, of several there the longest") {
  const AddedTokens tokens({{"<a>", 1}, {"<a>b", 2}, {"<a>bcd", 3}, {"x", 4}, {"b<a>", 5}});
  CHECK(find_all(tokens, "<a>") == "0:<a>");
  CHECK(find_all(tokens, "<a>bc") == "0:<a>b");
  CHECK(find_all(tokens, "<a>bcd") == "0:<a>bcd");
  CHECK(find_all(tokens, "-<a>bcx<a") == "1:<a>b 6:x");
  CHECK(find_all(tokens, "b<a>bcd") == "0:b<a>");
  CHECK(find_all(tokens, "<<a><A>") == "1:<a>");
  CHECK(find_all(tokens, "") == "");
}

TEST_CASE("added tokens: bytes beyond ASCII are matched like any other") {
  const AddedTokens tokens({{"\u00e9", 1}, {"\u00e9\u00e8", 2}});
  CHECK(find_all(tokens, "e\u00e9\u00e8\u00e9") == "1:\u00e9\u00e8 5:\u00e9");
}

TEST_CASE("added tokens: without any, nothing is found") {
  CHECK(AddedTokens({}).find("<a>", 0).token == nullptr);
  CHECK(AddedTokens({}).find("<a>", 0).begin == 3);
}

TEST_CASE("added tokens: they are found by content and by id") {
  const AddedTokens tokens({{"<b>", 7}, {"<a>", 9}});
  CHECK(tokens.with_content("<b>")->id == 7);
  CHECK(tokens.with_id(9)->content == "<a>");
  CHECK(tokens.with_content("<c>") == nullptr);
  CHECK(tokens.with_id(8) == nullptr);
}

}  // namespace treble
