#include <fmt/format.h>
#include <simdjson.h>
#include <treble/json.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace treble {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::size_t kMaxIntegerDigits = 4300;  // CPython's limit

std::size_t skip_digits(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
  return at;
}

/// RFC 8259: an optional minus, an integer without leading zeros, then optionally a fraction and an exponent.
bool is_number_token(std::string_view text) {
  std::size_t at = text.starts_with('-') ? 1 : 0;
  const std::size_t integer = at;
  at = skip_digits(text, at);
  if (at == integer || (text[integer] == '0' && at > integer + 1)) return false;
  if (at < text.size() && text[at] == '.') {
    const std::size_t fraction = at + 1;
    at = skip_digits(text, fraction);
    if (at == fraction) return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    std::size_t exponent = at + 1;
    if (exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-')) ++exponent;
    at = skip_digits(text, exponent);
    if (at == exponent) return false;
  }
  return at == text.size();
}

/// Where text stops being UTF-8.
std::size_t find_utf8_fault(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto lead = static_cast<unsigned char>(text[at]);
    if (lead < 0x80) {
      ++at;
      continue;
    }
    const std::size_t num_bytes = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    const std::string_view character = text.substr(at, num_bytes);
    if (!simdjson::validate_utf8(character.data(), character.size())) break;
    at += num_bytes;
  }
  return at;
}

/// The first control character inside a string, or else the quote that opens a string without end.
std::size_t find_string_fault(std::string_view text) {
  std::size_t opening = std::string_view::npos;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      opening = opening == std::string_view::npos ? at : std::string_view::npos;
    } else if (opening != std::string_view::npos && static_cast<unsigned char>(text[at]) < 0x20) {
      return at;
    }
  }
  return std::min(opening, text.size());
}

/// The UTF-16 unit of the escape \uXXXX that begins text, or -1 if there is none.
int escaped_unit(std::string_view text) {
  unsigned unit = 0;
  if (text.size() < 6 || !text.starts_with("\\u")) return -1;
  const char* end = std::from_chars(text.data() + 2, text.data() + 6, unit, 16).ptr;
  return end == text.data() + 6 ? static_cast<int>(unit) : -1;
}

/// The first escape that stands for no character in the string that opens at text[quote].
std::size_t find_escape_fault(std::string_view text, std::size_t quote) {
  constexpr auto is_high_half = [](int unit) { return unit >= 0xd800 && unit < 0xdc00; };
  constexpr auto is_low_half = [](int unit) { return unit >= 0xdc00 && unit < 0xe000; };
  std::size_t at = text.find_first_of("\"\\", quote + 1);
  while (at + 1 < text.size() && text[at] == '\\') {
    std::size_t num_bytes = 2;
    if (text[at + 1] == 'u') {
      const int unit = escaped_unit(text.substr(at));
      const bool is_pair = is_high_half(unit) && is_low_half(escaped_unit(text.substr(std::min(at + 6, text.size()))));
      if (unit < 0 || is_low_half(unit) || (is_high_half(unit) && !is_pair)) break;
      num_bytes = is_pair ? 12 : 6;
    } else if (std::string_view("\"\\/bfnrt").find(text[at + 1]) == std::string_view::npos) {
      break;
    }
    at = text.find_first_of("\"\\", at + num_bytes);
  }
  return std::min(at, text.size());
}

/// The token that begins text, in quotes, for messages.
std::string excerpt(std::string_view text) {
  constexpr std::size_t kMaxBytes = 24;
  std::size_t end = std::min({text.find_first_of(" \t\n\r,:[]{}\"", 1), text.size(), kMaxBytes});
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) ++end;  // whole characters
  return dump_json(Json(text.substr(0, end)));
}

/// Reads one document with simdjson's lazy interface, which hands out each token where it stands.
/// simdjson sees to brackets, commas, strings and UTF-8; what a number or a literal may be is seen to here.
class Reader {
 public:
  Reader(std::string_view text, std::string_view what, ErrorCode code, JsonLimits limits)
      : text_(text),
        bom_bytes_(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0),
        padded_(text.substr(bom_bytes_)),
        what_(what),
        code_(code),
        limits_(limits) {}

  Json read() {
    const std::size_t depth = static_cast<std::size_t>(std::max(limits_.max_depth, 0)) + 2;
    if (const auto error = parser_.allocate(padded_.size(), depth)) fail_whole(error);
    if (const auto error = parser_.iterate(padded_).get(document_)) fail_whole(error);
    Json value = read_value(document_, 1);
    const char* rest = where();
    if (!value.is_array() && !value.is_object() && !value.is_string()) {
      // simdjson has not stepped over a number or literal that is the whole document.
      const std::string_view token = document_.raw_json_token();
      rest = token.data() + token.size();
      if (rest == padded_.data() + padded_.size()) rest = nullptr;
    }
    if (rest) fail_at(rest, "the end of the document");
    return value;
  }

 private:
  // Node is ondemand::document for the outermost value, ondemand::value for all others.
  template <typename Node>
  Json read_value(Node& node, int depth) {
    ondemand::json_type type;
    if (node.type().get(type)) fail_at(where(), "a value");
    switch (type) {
      case ondemand::json_type::array:
        return read_array(node, depth);
      case ondemand::json_type::object:
        return read_object(node, depth);
      case ondemand::json_type::string:
        return read_string(node);
      default:
        return read_plain_token(node);
    }
  }

  template <typename Node>
  Json read_array(Node& node, int depth) {
    const char* bracket = token_of(node).data();
    check_depth(bracket, depth);
    ondemand::array array;
    if (node.get_array().get(array)) fail_unclosed(bracket, ']');
    Json::Array items;
    for (auto element : array) {
      ondemand::value item;
      if (std::move(element).get(item)) fail_at(where(), R"("," or "]" after an element)");
      items.push_back(read_value(item, depth + 1));
    }
    return items;
  }

  template <typename Node>
  Json read_object(Node& node, int depth) {
    const char* bracket = token_of(node).data();
    check_depth(bracket, depth);
    ondemand::object object;
    if (node.get_object().get(object)) fail_unclosed(bracket, '}');
    Json::Object members;
    for (auto element : object) {
      ondemand::field member;
      if (std::move(element).get(member)) fail_at(where(), R"(members like "name": value with "," between them)");
      const char* quote = member.key().raw() - 1;
      std::string_view name;
      if (member.unescaped_key().get(name)) fail_escape(quote);
      members.emplace_back(name, read_value(member.value(), depth + 1));
    }
    return members;
  }

  template <typename Node>
  Json read_string(Node& node) {
    const char* quote = token_of(node).data();
    std::string_view text;
    if (node.get_string().get(text)) fail_escape(quote);
    return text;
  }

  /// A number or a literal.
  template <typename Node>
  Json read_plain_token(Node& node) {
    std::string_view token = token_of(node);
    token = token.substr(0, token.find_last_not_of(" \t\n\r") + 1);
    if (token == "null") return nullptr;
    if (token == "true") return true;
    if (token == "false") return false;
    if (!is_number_token(token)) fail_at(token.data(), "null, true, false or a number such as -12, 0.5 or 1e6");

    Json number(Json::Number{std::string(token)});
    const bool is_integer = token.find_first_of(".eE") == std::string_view::npos;
    const std::size_t num_digits = token.size() - (token.starts_with('-') ? 1 : 0);
    if (is_integer && num_digits > kMaxIntegerDigits) {
      fail("the integer at byte {} has {} digits, the limit is {}", offset(token.data()), num_digits,
           kMaxIntegerDigits);
    }
    if (!is_integer && std::isinf(number.as_double())) {
      fail("the number {} at byte {} is beyond the largest double, 1.8e308", excerpt(token), offset(token.data()));
    }
    return number;
  }

  /// The bytes from a value's first up to the next token.
  template <typename Node>
  static std::string_view token_of(Node& node) {
    return simdjson::simdjson_result<std::string_view>(node.raw_json_token()).value_unsafe();
  }

  void check_depth(const char* bracket, int depth) const {
    if (depth > limits_.max_depth) {
      fail("byte {} opens level {} of arrays and objects, the limit is {}", offset(bracket), depth, limits_.max_depth);
    }
  }

  /// Where simdjson stands; null at the end.
  const char* where() {
    const char* at = nullptr;
    return document_.current_location().get(at) ? nullptr : at;
  }

  std::size_t offset(const char* at) const { return static_cast<std::size_t>(at - padded_.data()) + bom_bytes_; }

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> problem, Args&&... args) const {
    throw Error(code_, fmt::format("{}: {}", what_, fmt::format(problem, std::forward<Args>(args)...)));
  }

  [[noreturn]] void fail_at(const char* at, std::string_view expected) const {
    if (!at || offset(at) >= text_.size()) fail("the JSON ends at byte {}, expected {}", text_.size(), expected);
    fail("byte {} is {}, expected {}", offset(at), excerpt(text_.substr(offset(at))), expected);
  }

  /// simdjson first looks whether the document's last token closes its first.
  [[noreturn]] void fail_unclosed(const char* bracket, char closing) const {
    fail(
        "the {} at byte {} is cut short or followed by something else: the JSON ends at byte {} and its last "
        "character is not \"{}\"",
        closing == ']' ? "array" : "object", offset(bracket), text_.size(), closing);
  }

  [[noreturn]] void fail_escape(const char* quote) const {
    fail(R"(byte {} is an escape for no character, expected \" \\ \/ \b \f \n \r \t or \uXXXX, surrogates in pairs)",
         find_escape_fault(text_, offset(quote)));
  }

  /// simdjson's first pass, over the whole text, says what is wrong but not where.
  [[noreturn]] void fail_whole(simdjson::error_code error) const {
    switch (error) {
      case simdjson::EMPTY:
        fail("the JSON is empty, expected a value");
      case simdjson::UTF8_ERROR:
        fail("byte {} is not UTF-8", find_utf8_fault(text_));
      case simdjson::UNCLOSED_STRING:
        fail("the string that opens at byte {} never ends", find_string_fault(text_));
      case simdjson::UNESCAPED_CHARS:
        fail(R"(byte {} is a control character inside a string, expected an escape such as \n or \u0000)",
             find_string_fault(text_));
      default:
        fail("{} bytes of JSON cannot be read: {}", text_.size(), simdjson::error_message(error));
    }
  }

  std::string_view text_;  // offsets in messages count from its begin
  std::size_t bom_bytes_;
  simdjson::padded_string padded_;  // text_ without its byte order mark
  std::string_view what_;
  ErrorCode code_;
  JsonLimits limits_;
  ondemand::parser parser_;
  ondemand::document document_;
};

}  // namespace

Json parse_json(std::string_view text, std::string_view what, ErrorCode code, JsonLimits limits) {
  return Reader(text, what, code, limits).read();
}

}  // namespace treble
