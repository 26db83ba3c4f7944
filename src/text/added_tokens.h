#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace treble {

/// A control token that stands for its literal text.
struct AddedToken {
  std::string content;
  std::int32_t id = 0;
};

/// Finds added tokens in text: leftmost first, of those the longest, exact bytes.
class AddedTokens {
 public:
  /// @param tokens  none empty, contents and ids distinct
  explicit AddedTokens(std::vector<AddedToken> tokens);

  struct Match {
    std::size_t begin;        ///< where the token stands; the text's size if none is left
    const AddedToken* token;  ///< nullptr: none is left
  };
  /// The first token that begins at or after from.
  Match find(std::string_view text, std::size_t from) const;

  /// nullptr if there is none.
  const AddedToken* with_content(std::string_view content) const;
  const AddedToken* with_id(std::int32_t id) const;

 private:
  const AddedToken* longest_at(std::string_view text) const;

  std::vector<AddedToken> tokens_;        // by content
  std::array<bool, 256> starts_token_{};  // by the first byte
};

}  // namespace treble
