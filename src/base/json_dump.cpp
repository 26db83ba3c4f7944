#include <fmt/format.h>
#include <treble/json.h>

#include <iterator>

namespace treble {
namespace {

void append_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

/// As CPython prints what it read: an int keeps its digits, a float gets the shortest that round-trip.
void append_number(std::string& out, const Json& number) {
  const std::string& token = number.number_text();
  if (token.find_first_of(".eE") != std::string::npos) {
    out += Json::real(number.as_double()).number_text();
  } else {
    out += token == "-0" ? "0" : token;
  }
}

/// What stands between the tokens: nothing, or line breaks and blanks.
struct Layout {
  bool pretty;
  int level = 0;

  void break_line(std::string& out) const {
    if (!pretty) return;
    out += '\n';
    out.append(static_cast<std::size_t>(2 * level), ' ');
  }
};

void append_value(std::string& out, const Json& value, Layout& layout);

template <typename Items, typename AppendItem>
void append_items(std::string& out, const Items& items, std::string_view brackets, Layout& layout,
                  const AppendItem& append_item) {
  out += brackets[0];
  ++layout.level;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += ',';
    first = false;
    layout.break_line(out);
    append_item(item);
  }
  --layout.level;
  if (!items.empty()) layout.break_line(out);
  out += brackets[1];
}

void append_value(std::string& out, const Json& value, Layout& layout) {
  if (value.is_null()) {
    out += "null";
  } else if (value.is_bool()) {
    out += value.as_bool() ? "true" : "false";
  } else if (value.is_number()) {
    append_number(out, value);
  } else if (value.is_string()) {
    append_string(out, value.as_string());
  } else if (value.is_array()) {
    append_items(out, value.as_array(), "[]", layout, [&](const Json& item) { append_value(out, item, layout); });
  } else {
    append_items(out, value.as_object(), "{}", layout, [&](const Json::Member& member) {
      append_string(out, member.first);
      out += layout.pretty ? ": " : ":";
      append_value(out, member.second, layout);
    });
  }
}

std::string dump(const Json& value, Layout layout) {
  std::string out;
  append_value(out, value, layout);
  return out;
}

}  // namespace

std::string dump_json(const Json& value) {
  return dump(value, {.pretty = false});
}

std::string dump_json_pretty(const Json& value) {
  return dump(value, {.pretty = true});
}

}  // namespace treble
