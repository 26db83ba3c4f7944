#include "record/render.h"

#include <doctest/doctest.h>
#include <treble/error.h>

namespace treble {
namespace {

std::string render_text(std::string_view json) {
  return render(parse_json(json, "test", ErrorCode::kRequest));
}

TEST_CASE("render: a string is itself, without quotes or escapes") {
  CHECK(render_text(R"("a\n\"b\"")") == "a\n\"b\"");
  CHECK(render_text(R"("")") == "");
}

TEST_CASE("render: keys are sorted by code point at every depth") {
  CHECK(render_text(R"({"é":1,"b":[{"z":1,"a":{"d":0,"c":0}}],"B":2,"":3,"10":4,"9":5})") ==
        R"({"":3,"10":4,"9":5,"B":2,"b":[{"a":{"c":0,"d":0},"z":1}],"é":1})");
  // U+FFEE is below U+1F600 by code point, above it by UTF-16 unit.
  CHECK(render_text(R"({"\ud83d\ude00":1,"\uffee":2})") == "{\"\uffee\":2,\"😀\":1}");
}

TEST_CASE("render: of duplicate keys the last stays") {
  CHECK(render_text(R"({"b":1,"a":{"x":1,"x":2},"b":{"y":1},"b":3,"\u0062":[4]})") == R"({"a":{"x":2},"b":[4]})");
}

TEST_CASE("render: numbers are normalised and literals stand as they are") {
  CHECK(render_text("[1E3, 1250.00, -0, -0.0, 1e16, 1e-7, 123456789012345678901234567890, null, true, false]") ==
        "[1000.0,1250.0,0,-0.0,1e+16,1e-07,123456789012345678901234567890,null,true,false]");
  CHECK(render_text("2.50") == "2.5");
}

}  // namespace
}  // namespace treble
