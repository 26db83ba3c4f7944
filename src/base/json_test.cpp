#include <doctest/doctest.h>
#include <treble/json.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/mapped_file.h"

namespace treble {
namespace {

Json parse(std::string_view text, JsonLimits limits = {}) {
  return parse_json(text, "test", ErrorCode::kRequest, limits);
}

std::string round_trip(std::string_view text) {
  return dump_json(parse(text));
}

/// The message of the error that text causes; "" if it causes none.
std::string error_of(std::string_view text) {
  try {
    parse(text);
    return "";
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kRequest);
    return error.what();
  }
}

std::string nested(std::size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

TEST_CASE("json: numbers print as CPython prints them") {
  const Json table = parse(read_text_file(TREBLE_TEST_DATA "/json_numbers.json"));
  REQUIRE(table.as_array().size() > 300);
  for (const Json& row : table.as_array()) {
    const std::string& token = row.as_array()[0].as_string();
    CHECK_MESSAGE(round_trip(token) == row.as_array()[1].as_string(), token);
    CHECK(round_trip("[ " + token + " ]") == "[" + row.as_array()[1].as_string() + "]");
  }
}

TEST_CASE("json: text prints as CPython prints it with ensure_ascii=False") {
  CHECK(round_trip(R"("\" \\ \/ \b \f \n \r \t \u0000 \u001F \u007f é \u00e9 \u2028 \ud83d\ude00")") ==
        "\"\\\" \\\\ / \\b \\f \\n \\r \\t \\u0000 \\u001f \x7f é é \u2028 😀\"");
  CHECK(round_trip(" {\"b\" : [ 1 , true,false,\tnull ] , \"a\":{ }, \"\" : [\n] }\r\n") ==
        R"({"b":[1,true,false,null],"a":{},"":[]})");
}

TEST_CASE("json: the pretty form puts one member or element on a line") {
  CHECK(dump_json_pretty(parse(R"({"a":[1,{"b":2}],"c":{},"d":[]})")) == R"({
  "a": [
    1,
    {
      "b": 2
    }
  ],
  "c": {},
  "d": []
})");
}

TEST_CASE("json: a value keeps number tokens, the order of members and duplicates; find gives the last duplicate") {
  const Json value = parse(R"({"z":1.50,"a":1,"z":2E0})");
  REQUIRE(value.as_object().size() == 3);
  CHECK(value.as_object()[0].first == "z");
  CHECK(value.as_object()[0].second.number_text() == "1.50");
  REQUIRE(value.find("z"));
  CHECK(value.find("z")->number_text() == "2E0");
  CHECK(value.find("y") == nullptr);
  CHECK(parse("[1]").find("z") == nullptr);
}

TEST_CASE("json: a document may be one scalar, and a byte order mark before it is skipped") {
  CHECK(parse(" null ").is_null());
  CHECK(parse("true").as_bool());
  CHECK(parse("-7\n").number_text() == "-7");
  CHECK(parse("\"x\"").as_string() == "x");
  CHECK(parse("\xef\xbb\xbf[1]").as_array().size() == 1);
  CHECK(error_of("\xef\xbb\xbf[1,]") == R"(test: byte 6 is "]", expected a value)");
}

TEST_CASE("json: a number converts to a double and, where it is one, to an integer") {
  CHECK(parse("1e-400").as_double() == 0);
  CHECK(std::signbit(parse("-1e-400").as_double()));
  CHECK(parse("0.1").as_double() == 0.1);
  CHECK(std::isinf(parse("1" + std::string(400, '0')).as_double()));
  long long integer = 0;
  CHECK((parse("-9223372036854775808").as_int64(integer) && integer == std::numeric_limits<long long>::min()));
  CHECK((parse("-0").as_int64(integer) && integer == 0));
  for (const char* token : {"9223372036854775808", "1.0", "1e2"}) CHECK_FALSE(parse(token).as_int64(integer));
}

TEST_CASE("json: values made by code print as CPython would print them") {
  CHECK(dump_json(Json::integer(-5)) == "-5");
  CHECK(dump_json(Json::real(1)) == "1.0");
  CHECK(dump_json(Json::real(1e-5)) == "1e-05");
  CHECK(dump_json(Json::real(-0.0)) == "-0.0");
  CHECK(dump_json(Json(Json::Object{{"a", Json(Json::Array{nullptr, true, "x"})}})) == R"({"a":[null,true,"x"]})");
  CHECK_THROWS_AS(Json::real(std::nan("")), Error);
  CHECK_THROWS_AS(Json::real(INFINITY), Error);
}

TEST_CASE("json: an error says where the text stops being JSON and what was expected there") {
  CHECK(error_of("") == "test: the JSON is empty, expected a value");
  CHECK(error_of(" \n") == "test: the JSON is empty, expected a value");
  CHECK(error_of("[1,]") == R"(test: byte 3 is "]", expected a value)");
  CHECK(error_of("{\"a\":}") == R"(test: byte 5 is "}", expected a value)");
  CHECK(error_of("[1 2]") == R"(test: byte 3 is "2", expected "," or "]" after an element)");
  CHECK(error_of("{\"a\":[1}") == R"(test: byte 7 is "}", expected "," or "]" after an element)");
  CHECK(error_of("{a:1}") == R"(test: byte 1 is "a", expected members like "name": value with "," between them)");
  CHECK(error_of("{\"a\" 1}") == R"(test: byte 5 is "1", expected members like "name": value with "," between them)");
  CHECK(error_of("{\"a\":1,}") == R"(test: byte 7 is "}", expected members like "name": value with "," between them)");
  CHECK(error_of("[1]]") == R"(test: byte 3 is "]", expected the end of the document)");
  CHECK(error_of("1 2") == R"(test: byte 2 is "2", expected the end of the document)");
  CHECK(error_of("\"a\" \"b\"") == R"(test: byte 4 is "\"b", expected the end of the document)");
  CHECK(error_of("[1,2] x") ==
        "test: the array at byte 0 is cut short or followed by something else: the JSON ends at byte 7 and its last "
        "character is not \"]\"");
  CHECK(error_of("{\"a\":1") ==
        "test: the object at byte 0 is cut short or followed by something else: the JSON ends at byte 6 and its last "
        "character is not \"}\"");
  CHECK(error_of("[[1]") == R"(test: the JSON ends at byte 4, expected "," or "]" after an element)");
  CHECK(error_of("[tru]") ==
        R"(test: byte 1 is "tru", expected null, true, false or a number such as -12, 0.5 or 1e6)");
  CHECK(error_of("[NaN]") == R"(test: byte 1 is "NaN", expected a value)");
  CHECK(error_of("[\"a]") == "test: the string that opens at byte 1 never ends");
  CHECK(error_of("[\"a\nb\"]") ==
        R"(test: byte 3 is a control character inside a string, expected an escape such as \n or \u0000)");
}

TEST_CASE("json: what is no number of RFC 8259 is refused") {
  for (const char* token : {"01", "-", "+1", ".5", "1.", "1.e3", "1e", "1e+", "--1", "0x10", "1_000", "-Infinity",
                            "Infinity", "-NaN", "1.5f", "1e5.5", "1\"a\"", "1'", "٣"}) {
    CHECK_MESSAGE(error_of(token).starts_with("test: byte 0 is "), token);
    CHECK_MESSAGE(error_of(std::string("{\"a\": [0, ") + token + "]}").starts_with("test: byte 10 is "), token);
  }
}

TEST_CASE("json: a number beyond the doubles and an integer of more than 4,300 digits are refused") {
  CHECK(error_of("[1e400]") == R"(test: the number "1e400" at byte 1 is beyond the largest double, 1.8e308)");
  CHECK(error_of("[-1.0e309]") == R"(test: the number "-1.0e309" at byte 1 is beyond the largest double, 1.8e308)");
  CHECK(error_of("1" + std::string(400, '0') + "e-5") != "");
  CHECK(error_of("1" + std::string(400, '0') + "e-200") == "");
  CHECK(error_of("-" + std::string(4300, '9')) == "");
  CHECK(error_of("[-" + std::string(4301, '9') + "]") ==
        "test: the integer at byte 1 has 4301 digits, the limit is 4300");
  CHECK(error_of("0." + std::string(1'000'000, '9')) == "");
}

TEST_CASE("json: an escape that stands for no character is refused where it stands") {
  for (const char* escape :
       {R"(\ud800)", R"(\udc00)", R"(\ud800x)", R"(\ud800\n)", R"(\ud800\u0041)", R"(\ud800\ud800)", R"(\udc00\ud800)",
        R"(\x41)", R"(\u12g4)", R"(\u12)", R"(\U00000041)", R"(\')"}) {
    const std::string text = std::string(R"(["\\ud800\n)") + escape + "\"]";
    CHECK_MESSAGE(error_of(text).starts_with("test: byte 11 is an escape for no character"), text);
    CHECK_MESSAGE(error_of(std::string("{\"") + escape + "\":1}").starts_with("test: byte 2 is an escape"), escape);
  }
}

TEST_CASE("json: bytes that are not UTF-8 are refused where they stand") {
  for (const char* bytes : {"\xff", "\x80", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
    CHECK(error_of(std::string("[\"é") + bytes + "\"]") == "test: byte 4 is not UTF-8");
  }
}

TEST_CASE("json: a NUL byte is refused inside and outside of strings") {
  using namespace std::string_literals;
  for (const std::string& text : {"\0"s, "[1\0]"s, "[1]\0"s, "[\"\0\"]"s, "{\"a\0\":1}"s}) CHECK(error_of(text) != "");
}

TEST_CASE("json: nesting is allowed up to the limit, and far beyond it is an error, not a crash") {
  CHECK(error_of(nested(64)) == "");
  CHECK(error_of(nested(65)) == "test: byte 64 opens level 65 of arrays and objects, the limit is 64");
  CHECK(parse(nested(300), {.max_depth = 300}).is_array());
  CHECK_THROWS_AS(parse("[]", {.max_depth = 0}), Error);
  for (const std::string& text : {nested(100'000), std::string(100'000, '['), "[" + std::string(100'000, '{') + "]"}) {
    CHECK(error_of(text) != "");
  }
  std::string objects;
  for (int level = 0; level < 100'000; ++level) objects += "{\"a\":";
  CHECK(
      error_of(objects + "1" + std::string(100'000, '}')).ends_with("level 65 of arrays and objects, the limit is 64"));
}

TEST_CASE("json: a document that is cut or changed at any byte is read or refused, never worse") {
  const std::string text = R"( {"a\"é":[-1.5e+3,"\ud83d\ude00",{"":null,"b":[true,false,[]]}],"c":"\\"})";
  for (std::size_t size = 0; size < text.size(); ++size) CHECK(error_of(text.substr(0, size)) != "");
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const char c : std::string_view("\0\"\\[]{},:0e \x80\xff", 14)) {
      std::string changed = text;
      changed[at] = c;
      if (error_of(changed).empty()) CHECK(round_trip(round_trip(changed)) == round_trip(changed));
    }
    CHECK_NOTHROW(error_of(text.substr(at)));
  }
}

}  // namespace
}  // namespace treble
