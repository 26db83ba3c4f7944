#include "eval/records.h"

#include <doctest/doctest.h>
#include <treble/error.h>

namespace treble::eval {
namespace {

constexpr const char* kRequest =
    R"("state": "late", "questions": {"late": {"type": "noul"}, "team": {"type": "choice", "criteria": {"a": null,)"
    R"( "b": null}}, "urgency": {"type": "score", "criteria": ["low", "mid", "high"]}})";

std::string record_with(const std::string& answers) {
  return R"({"request": {)" + std::string(kRequest) + R"(}, "set": "values", "family": "mail", "answers": )" + answers +
         "}";
}

/// The message of the error that the line causes; "" if it causes none.
std::string error_of(const std::string& line) {
  try {
    parse_record(line, "r.jsonl line 7");
    return "";
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kRequest);
    return error.what();
  }
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

using Labels = std::vector<std::optional<std::size_t>>;

TEST_CASE("records: labels of the three types become places among the options") {
  const LabelledRecord record = parse_record(record_with(R"({"urgency": 2, "late": false, "team": "b"})"), "here");
  CHECK(record.place == "here");
  CHECK(record.set == "values");
  CHECK(record.family == "mail");
  CHECK(record.labels == Labels{1, 1, 2});
  CHECK(parse_record(record_with(R"({"late": true})"), "").labels == Labels{0, std::nullopt, std::nullopt});
}

TEST_CASE("records: a plain request is a record without labels") {
  const LabelledRecord record = parse_record("{" + std::string(kRequest) + "}", "");
  CHECK(record.request.questions.size() == 3);
  CHECK(record.labels == Labels(3));
  CHECK(record.set.empty());
}

TEST_CASE("records: what is wrong with a line is said with its place") {
  CHECK(contains(error_of("{"), "r.jsonl line 7"));
  CHECK(contains(error_of(record_with(R"({"late": "true"})")), R"(answers["late"] is "true", expected true or false)"));
  CHECK(contains(error_of(record_with(R"({"team": "c"})")), R"(answers["team"] is "c", expected one of "a", "b")"));
  CHECK(contains(error_of(record_with(R"({"urgency": 3})")), "expected a level from 0 to 2"));
  CHECK(contains(error_of(record_with(R"({"urgency": -1})")), "expected a level from 0 to 2"));
  CHECK(contains(error_of(record_with(R"({"urgency": 1.0})")), "expected a level from 0 to 2"));
  CHECK(contains(error_of(record_with(R"({"size": 1})")), R"(answers has "size", which is no question)"));
  CHECK(contains(error_of(record_with(R"({"late": true, "late": false})")), R"(answers has "late" twice)"));
  CHECK(contains(error_of(record_with("[]")), "answers is an array"));
  CHECK(contains(error_of(R"({"request": {"state": "s"}})"), "questions is missing"));
  CHECK(contains(error_of(R"({"set": 1, "request": {)" + std::string(kRequest) + "}}"), "set is a number"));
}

}  // namespace
}  // namespace treble::eval
