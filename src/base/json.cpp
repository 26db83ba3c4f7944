#include <fmt/format.h>
#include <treble/json.h>

#include <charconv>
#include <cmath>
#include <limits>

namespace treble {
namespace {

/// Whether a number that a double cannot hold is too near 0, not too far from it.
bool is_below_one(std::string_view token) {
  const std::string_view digits = token.substr(0, token.find_first_of("eE"));
  std::string_view exponent_text = token.substr(std::min(digits.size() + 1, token.size()));
  if (exponent_text.starts_with('+')) exponent_text.remove_prefix(1);
  long long exponent = 0;
  const auto parsed = std::from_chars(exponent_text.data(), exponent_text.data() + exponent_text.size(), exponent);
  if (parsed.ec == std::errc::result_out_of_range) return exponent_text.starts_with('-');

  const std::size_t point = std::min(digits.find('.'), digits.size());
  const std::size_t first = digits.find_first_of("123456789");
  const auto magnitude = static_cast<long long>(point) - static_cast<long long>(first);  // > 0: digits before the point
  return exponent < -magnitude;
}

}  // namespace

Json Json::integer(long long value) {
  return Json(Number{std::to_string(value)});
}

Json Json::real(double value) {
  if (!std::isfinite(value)) throw Error(ErrorCode::kInternal, fmt::format("json: {} is not a JSON number", value));
  // The two limits are those of CPython's repr; both forms of to_chars are the shortest that round-trip.
  const double size = std::abs(value);
  const bool fixed = size == 0 || (size >= 1e-4 && size < 1e16);
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value,
                                 fixed ? std::chars_format::fixed : std::chars_format::scientific)
                       .ptr;
  std::string text(buffer, end);
  if (fixed && text.find('.') == std::string::npos) text += ".0";
  return Json(Number{std::move(text)});
}

double Json::as_double() const {
  const std::string& token = number_text();
  double value = 0;
  const auto parsed = std::from_chars(token.data(), token.data() + token.size(), value);
  if (parsed.ec != std::errc::result_out_of_range) return value;
  return std::copysign(is_below_one(token) ? 0.0 : std::numeric_limits<double>::infinity(),
                       token.starts_with('-') ? -1.0 : 1.0);
}

bool Json::as_int64(long long& out) const {
  const std::string& token = number_text();
  long long value = 0;
  const auto parsed = std::from_chars(token.data(), token.data() + token.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != token.data() + token.size()) return false;
  out = value;
  return true;
}

const Json* Json::find(std::string_view key) const {
  if (!is_object()) return nullptr;
  const Object& members = as_object();
  for (auto member = members.rbegin(); member != members.rend(); ++member) {
    if (member->first == key) return &member->second;
  }
  return nullptr;
}

const char* Json::type_name() const {
  if (is_bool()) return "a boolean";
  if (is_number()) return "a number";
  if (is_string()) return "a string";
  if (is_array()) return "an array";
  if (is_object()) return "an object";
  return "null";
}

}  // namespace treble
