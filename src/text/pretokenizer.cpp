#include "text/pretokenizer.h"

namespace treble {
namespace {

constexpr std::string_view kPlainRegex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kMarksRegex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

bool is_newline(char32_t c) {
  return c == '\r' || c == '\n';
}

/// Bytes of the English ending that text begins with (what follows the apostrophe in 's, 't, 're, 've, 'm, 'll, 'd, in
/// either case); 0 if it begins with none.
std::size_t contraction_bytes(std::string_view text) {
  const auto lower = [&](std::size_t i) { return i < text.size() ? static_cast<char>(text[i] | 0x20) : '\0'; };
  switch (lower(0)) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return 1;
    case 'r':
    case 'v':
      return lower(1) == 'e' ? 2 : 0;
    case 'l':
      return lower(1) == 'l' ? 2 : 0;
    default:
      return text.starts_with("\u017F") ? 2 : 0;  // the long s is an s in another case
  }
}

}  // namespace

std::optional<SplitPattern> parse_split_pattern(std::string_view regex) {
  if (regex == kPlainRegex) return SplitPattern::kPlain;
  if (regex == kMarksRegex) return SplitPattern::kMarks;
  return std::nullopt;
}

Pretokenizer::Pretokenizer(SplitPattern pattern)
    : table_(UnicodeTable::instance()),
      word_(pattern == SplitPattern::kMarks ? kLetter | kMark : kLetter),
      not_symbol_(static_cast<std::uint8_t>(word_ | kNumber | kSpace)) {}

std::size_t Pretokenizer::piece_end(std::string_view text, std::size_t begin) const {
  const Character first = character_at(text, begin);
  const std::uint8_t bits = table_[first.code_point];
  const std::size_t next = begin + first.num_bytes;

  if (first.code_point == '\'') {
    if (const std::size_t ending = contraction_bytes(text.substr(next))) return next + ending;
  }
  // A word, with the one character before it that is no letter, digit or newline.
  if (bits & word_) return skip(word_, text, next);
  if (bits & kNumber) return next;
  if (next < text.size() && !is_newline(first.code_point) && (bits_at(text, next) & word_))
    return skip(word_, text, next);
  // Symbols, with the blank before them and the newlines after them.
  const std::size_t symbols = first.code_point == ' ' ? next : begin;
  std::size_t end = skip_symbols(text, symbols);
  if (end > symbols) {
    while (end < text.size() && is_newline(static_cast<unsigned char>(text[end]))) ++end;
    return end;
  }
  return blanks_end(text, begin);
}

/// Whitespace: all up to the last newline in it; without one, all but the last character, which goes to the next piece.
std::size_t Pretokenizer::blanks_end(std::string_view text, std::size_t begin) const {
  std::size_t end = begin;
  std::size_t last = begin;
  std::size_t after_newline = begin;
  while (end < text.size()) {
    const Character c = character_at(text, end);
    if (!(table_[c.code_point] & kSpace)) break;
    last = end;
    end += c.num_bytes;
    if (is_newline(c.code_point)) after_newline = end;
  }
  if (after_newline > begin) return after_newline;
  return end == text.size() || last == begin ? end : last;
}

std::size_t Pretokenizer::skip(std::uint8_t any_of, std::string_view text, std::size_t at) const {
  while (at < text.size()) {
    const Character c = character_at(text, at);
    if (!(table_[c.code_point] & any_of)) break;
    at += c.num_bytes;
  }
  return at;
}

std::size_t Pretokenizer::skip_symbols(std::string_view text, std::size_t at) const {
  while (at < text.size()) {
    const Character c = character_at(text, at);
    if (table_[c.code_point] & not_symbol_) break;
    at += c.num_bytes;
  }
  return at;
}

std::uint8_t Pretokenizer::bits_at(std::string_view text, std::size_t at) const {
  return table_[character_at(text, at).code_point];
}

}  // namespace treble
