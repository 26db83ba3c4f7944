#include "text/added_tokens.h"

#include <algorithm>
#include <utility>

namespace treble {
namespace {

unsigned char byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::sort(tokens_.begin(), tokens_.end(),
            [](const AddedToken& a, const AddedToken& b) { return a.content < b.content; });
  for (const AddedToken& token : tokens_) starts_token_[byte_at(token.content, 0)] = true;
}

AddedTokens::Match AddedTokens::find(std::string_view text, std::size_t from) const {
  for (std::size_t i = from; i < text.size(); ++i) {
    if (!starts_token_[byte_at(text, i)]) continue;
    if (const AddedToken* token = longest_at(text.substr(i))) return {i, token};
  }
  return {text.size(), nullptr};
}

const AddedToken* AddedTokens::longest_at(std::string_view text) const {
  // [begin, end) are the tokens that agree with the text in their first `length` bytes; the shortest sorts first.
  auto begin = tokens_.begin();
  auto end = tokens_.end();
  const AddedToken* longest = nullptr;
  for (std::size_t length = 0;; ++length) {
    if (begin != end && begin->content.size() == length) longest = &*begin++;
    if (begin == end || length == text.size()) return longest;
    const unsigned char byte = byte_at(text, length);
    begin = std::partition_point(begin, end, [&](const AddedToken& t) { return byte_at(t.content, length) < byte; });
    end = std::partition_point(begin, end, [&](const AddedToken& t) { return byte_at(t.content, length) == byte; });
  }
}

const AddedToken* AddedTokens::with_content(std::string_view content) const {
  const auto at =
      std::find_if(tokens_.begin(), tokens_.end(), [&](const AddedToken& t) { return t.content == content; });
  return at == tokens_.end() ? nullptr : &*at;
}

const AddedToken* AddedTokens::with_id(std::int32_t id) const {
  const auto at = std::find_if(tokens_.begin(), tokens_.end(), [&](const AddedToken& t) { return t.id == id; });
  return at == tokens_.end() ? nullptr : &*at;
}

}  // namespace treble
