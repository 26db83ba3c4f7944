#pragma once

#include <treble/error.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace treble {

/// A JSON value that loses nothing the model reads: numbers keep their text, objects keep their order and duplicates.
class Json {
 public:
  struct Number {
    std::string text;  ///< the token as it stood in the document, e.g. "1250.0", "1e+16", "123456789012345678901"
    bool operator==(const Number&) const = default;
  };
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  Json() = default;  ///< null
  Json(std::nullptr_t) {}
  Json(bool value) : value_(value) {}
  Json(Number value) : value_(std::move(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  Json(Object value) : value_(std::move(value)) {}

  static Json integer(long long value);
  /// A finite number, written as CPython's repr writes it: shortest digits that round-trip, "1.0", "1e-05".
  /// @throws Error kInternal if value is not finite
  static Json real(double value);

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_number() const { return std::holds_alternative<Number>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  // Each is for a value of that type only; another type throws std::bad_variant_access.
  bool as_bool() const { return std::get<bool>(value_); }
  const std::string& number_text() const { return std::get<Number>(value_).text; }
  const std::string& as_string() const { return std::get<std::string>(value_); }
  const Array& as_array() const { return std::get<Array>(value_); }
  Array& as_array() { return std::get<Array>(value_); }
  const Object& as_object() const { return std::get<Object>(value_); }
  Object& as_object() { return std::get<Object>(value_); }

  /// The number as a double (nearest; an integer token may be as large as infinity). For a number only.
  double as_double() const;
  /// The number as an integer. For a number only; false if the token has a fraction, an exponent or does not fit.
  bool as_int64(long long& out) const;

  /// The member of that name, the last one of duplicates; nullptr if this is no object or has none.
  const Json* find(std::string_view key) const;

  /// "null", "a boolean", "a number", "a string", "an array", "an object": for messages.
  const char* type_name() const;

  bool operator==(const Json&) const = default;

 private:
  std::variant<std::nullptr_t, bool, Number, std::string, Array, Object> value_ = nullptr;
};

/// What a reader of JSON allows.
struct JsonLimits {
  int max_depth = 64;  ///< arrays and objects inside each other; the outermost counts as 1
};

/// Parses one JSON document (RFC 8259, UTF-8; nothing but blanks may follow it).
/// Refuses NaN, infinities, fractions and exponents that overflow a double, integers of more than 4,300 digits, lone
/// surrogates, nesting beyond the limit, and bytes that are not UTF-8. An initial byte order mark is skipped.
/// @param what  begins the message of an error, e.g. "request" or "checkpoint: /m/config.json"
/// @param code  the code of the errors thrown here
/// @throws Error  saying where: the byte offset and, for a number, the token
Json parse_json(std::string_view text, std::string_view what, ErrorCode code, JsonLimits limits = {});

/// Compact JSON exactly as CPython's json.dumps(ensure_ascii=False, separators=(",", ":")) prints the value that
/// json.loads read: numbers are normalised ("1E3" -> "1000.0", "-0" -> "0"), non-ASCII text stands as it is.
/// Object members keep their order.
std::string dump_json(const Json& value);

/// The same over several lines: two blanks per level, one member or element a line, "key": value.
std::string dump_json_pretty(const Json& value);

}  // namespace treble
