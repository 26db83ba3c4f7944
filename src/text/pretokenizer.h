#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "text/unicode.h"

namespace treble {

/// The two regular expressions that split text into pieces; they differ in where combining marks belong.
enum class SplitPattern {
  kPlain,  ///< marks are symbols
  kMarks,  ///< marks belong to words
};

/// The pattern that a tokenizer.json writes so, if it is one of the two.
std::optional<SplitPattern> parse_split_pattern(std::string_view regex);

/// Splits text into the pieces that a leftmost search with the pattern's regular expression finds; they tile the text.
/// Written by hand: no backtracking, no character looked at more than a few times.
class Pretokenizer {
 public:
  explicit Pretokenizer(SplitPattern pattern);

  /// Where the piece that begins at text[begin] ends. The text is valid UTF-8, begin the end of a piece or 0, and
  /// begin < text.size(). What follows the text's end is taken to be nothing: pass whole segments.
  std::size_t piece_end(std::string_view text, std::size_t begin) const;

 private:
  std::size_t skip(std::uint8_t any_of, std::string_view text, std::size_t at) const;
  std::size_t skip_symbols(std::string_view text, std::size_t at) const;
  std::size_t blanks_end(std::string_view text, std::size_t begin) const;
  std::uint8_t bits_at(std::string_view text, std::size_t at) const;

  const UnicodeTable& table_;
  std::uint8_t word_;        // CharBits of which a word's characters have one
  std::uint8_t not_symbol_;  // CharBits of which a symbol has none
};

}  // namespace treble
