#include "record/encode.h"

#include <doctest/doctest.h>
#include <treble/error.h>

#include <string>
#include <string_view>

#include "base/mapped_file.h"

namespace treble {
namespace {

const Tokenizer& tokenizer() {
  static const Tokenizer loaded(TREBLE_TEST_DATA "/micro/release");
  return loaded;
}

Json read_json(const std::string& path) {
  return parse_json(read_text_file(path), path, ErrorCode::kInternal);
}

EncodedRecord encode(std::string_view body, const EncodeOptions& options = {}) {
  return encode_record(parse_request(body), tokenizer(), options);
}

std::string text_of(const EncodedRecord& record, Span span) {
  return tokenizer().decode({record.input_ids.begin() + span.begin, record.input_ids.begin() + span.end});
}

TEST_CASE("encode_record: ids, spans and option order are those of the release's own code") {
  const Json requests = read_json(TREBLE_TEST_DATA "/micro/requests.json");
  const Json expected = read_json(TREBLE_TEST_DATA "/micro/expected_fp32.json");
  int num_compared = 0;
  for (const auto& [name, json] : requests.as_object()) {
    if (json.find("images") || json.find("videos")) continue;
    CAPTURE(name);
    EncodeOptions options;
    if (const Json* max_length = json.find("_max_length")) {
      options.max_tokens = static_cast<std::int64_t>(max_length->as_double());
      options.truncate_state = true;
    }
    const Request request = request_from_json(json);
    const EncodedRecord record = encode_record(request, tokenizer(), options);
    const Json actual = to_json(record);
    REQUIRE(expected.find(name));
    CHECK(dump_json(*actual.find("input_ids")) == dump_json(*expected.find(name)->find("input_ids")));
    CHECK(dump_json(*actual.find("questions")) == dump_json(*expected.find(name)->find("questions")));
    CHECK((record.dropped_state_tokens > 0) == options.truncate_state);
    for (std::size_t q = 0; q < record.questions.size(); ++q) {
      const EncodedQuestion& question = record.questions[q];
      for (std::size_t i = 0; i < question.option_ids.size(); ++i) {
        CHECK(request.questions[q].options.at(question.request_order.at(i)).id == question.option_ids[i]);
      }
    }
    ++num_compared;
  }
  CHECK(num_compared == 16);
}

TEST_CASE("encode_record: a span covers exactly the text of its instructions or option") {
  const EncodedRecord record = encode(R"({"state":{"option_id":"a"},"questions":{"q":{"type":"choice",
      "instructions":{"b":1,"a":"option_id"},"criteria":{"b":{"y":[],"x":null},"a":null}}}})");
  const EncodedQuestion& question = record.questions.at(0);
  CHECK(text_of(record, question.question_span) == R"({"a":"option_id","b":1})");
  REQUIRE(question.option_spans.size() == 2);
  CHECK(text_of(record, question.option_spans[0]) == R"({"option_id":"a"})");
  CHECK(text_of(record, question.option_spans[1]) == R"({"description":{"x":null,"y":[]},"option_id":"b"})");
  CHECK(question.request_order == std::vector<std::int32_t>{1, 0});
}

TEST_CASE("encode_record: absent, null and empty instructions are the question's id; a blank is itself") {
  for (const char* instructions : {"", R"("instructions":null,)", R"("instructions":"",)"}) {
    const EncodedRecord record =
        encode(std::string(R"({"state":"","questions":{"the id":{)") + instructions + R"("type":"noul"}}})");
    CHECK(text_of(record, record.questions.at(0).question_span) == "the id");
  }
  const EncodedRecord record = encode(R"({"state":"","questions":{"the id":{"instructions":" ","type":"noul"}}})");
  CHECK(text_of(record, record.questions.at(0).question_span) == " ");
}

TEST_CASE("encode_record: options of a score and a noul keep their order, whatever their ids") {
  const EncodedRecord record = encode(R"({"state":"","questions":{
      "s":{"type":"score","criteria":["z","y","x","w","v","u","t","s","r","q"]},
      "n":{"type":"noul","criteria":{"false":"b","true":"a"}}}})");
  CHECK(record.questions.at(0).option_ids.back() == "9");
  CHECK(record.questions[0].request_order.back() == 9);
  CHECK(record.questions.at(1).option_ids == std::vector<std::string>{"true", "false"});
}

TEST_CASE("encode_record: a prompt beyond the limit is refused with both numbers, or cut when asked") {
  const std::string body = R"({"state":"one two three four five six","questions":{"q":{"type":"noul"}}})";
  const EncodedRecord whole = encode(body);
  const auto total_tokens = static_cast<std::int64_t>(whole.input_ids.size());
  CHECK(encode(body, {.max_tokens = total_tokens}).input_ids == whole.input_ids);

  const auto error_of = [&](const EncodeOptions& options) {
    try {
      encode(body, options);
      return std::string();
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kTooLong);
      return std::string(error.what());
    }
  };
  CHECK(error_of({.max_tokens = total_tokens - 3}) == "request: prompt is " + std::to_string(total_tokens) +
                                                          " tokens, limit is " + std::to_string(total_tokens - 3) +
                                                          "; shorten \"state\" by 3 tokens");

  const EncodedRecord cut = encode(body, {.max_tokens = total_tokens - 3, .truncate_state = true});
  CHECK(cut.dropped_state_tokens == 3);
  CHECK(cut.input_ids.size() == whole.input_ids.size() - 3);
  CHECK(text_of(cut, cut.questions.at(0).question_span) == "q");
  CHECK(cut.questions[0].question_span.begin == whole.questions.at(0).question_span.begin - 3);

  for (const bool truncate : {false, true}) {
    CHECK(
        error_of({.max_tokens = 20, .truncate_state = truncate}).starts_with("request: prompt without \"state\" is "));
  }
}

TEST_CASE("encode_record: media are refused, since answering without them would be answering something else") {
  for (const std::string name : {"images", "videos", "files"}) {
    const std::string body = R"({"state":"","questions":{"q":{"type":"noul"}},")" + name + "\":";
    CHECK_NOTHROW(encode(body + "[]}"));
    const std::string reported = name == "files" ? "images" : name;
    const std::string message =
        "request: " + reported + " holds 2 items, but this build reads no media; send text only";
    CHECK_THROWS_WITH_AS(encode(body + "[\"a\",\"b\"]}"), message.c_str(), Error);
  }
}

}  // namespace
}  // namespace treble
