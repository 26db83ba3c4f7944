#include "record/encode.h"

#include <doctest/doctest.h>
#include <treble/error.h>

#include <string>
#include <string_view>

#include "base/mapped_file.h"
#include "media/media_item.h"

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

MediaItems items(std::vector<MediaItem> list) {
  MediaItems out;
  for (MediaItem& item : list) out.push_back(std::make_shared<const MediaItem>(std::move(item)));
  return out;
}

MediaItem image(std::int64_t rows, std::int64_t columns) {
  return {.kind = MediaKind::kImage, .grid_h = rows, .grid_w = columns};
}

MediaItem video(std::vector<double> timestamps, std::int64_t rows, std::int64_t columns) {
  return {.kind = MediaKind::kVideo,
          .grid_t = std::ssize(timestamps),
          .grid_h = rows,
          .grid_w = columns,
          .levels = {},
          .timestamps = std::move(timestamps)};
}

std::string between(const std::string& text, std::string_view begin, std::string_view end) {
  const std::size_t first = text.find(begin) + begin.size();
  return text.substr(first, text.find(end, first) - first);
}

TEST_CASE("encode_record: media stand before the state, images first, a clip's frame groups behind their timestamps") {
  const Request request =
      parse_request(R"({"state":"the state","videos":["v"],"images":["a","b"],"questions":{"q":{"type":"noul"}}})");
  // Halves of the last decimal round to even on the exact binary value, as C prints them.
  const EncodedRecord record =
      encode_record(request, tokenizer(), {}, items({image(2, 4), image(2, 2), video({0.25, 0.75, 12.0}, 2, 2)}));
  const std::string media =
      between(text_of(record, {0, static_cast<std::int32_t>(record.input_ids.size())}), "STATE:\n", "the state");
  CHECK(media ==
        "<|vision_start|><|image_pad|><|image_pad|><|vision_end|><|vision_start|><|image_pad|><|vision_end|>"
        "<|vision_start|><0.2 seconds><|vision_start|><|video_pad|><|vision_end|>"
        "<0.8 seconds><|vision_start|><|video_pad|><|vision_end|>"
        "<12.0 seconds><|vision_start|><|video_pad|><|vision_end|><|vision_end|>\n");
  REQUIRE(record.media.size() == 3);
  REQUIRE(record.media_spans.size() == 5);
  CHECK(text_of(record, record.media_spans[0]) == "<|image_pad|><|image_pad|>");
  CHECK(text_of(record, record.media_spans[1]) == "<|image_pad|>");
  for (std::size_t i = 2; i < 5; ++i) CHECK(text_of(record, record.media_spans[i]) == "<|video_pad|>");
  CHECK(text_of(record, record.questions.at(0).question_span) == "q");

  const Json json = to_json(record);
  const Json& media_json = *json.find("media");
  REQUIRE(media_json.as_array().size() == 3);
  CHECK(dump_json(*media_json.as_array()[0].find("grid_thw")) == "[1,2,4]");
  CHECK(dump_json(*media_json.as_array()[2].find("timestamps")) == "[0.25,0.75,12.0]");
  CHECK(media_json.as_array()[2].find("spans")->as_array().size() == 3);
}

TEST_CASE("encode_record: a pad token that the caller writes stays text") {
  const Request request =
      parse_request(R"({"state":"<|image_pad|>","images":["a"],"questions":{"q":{"type":"noul"}}})");
  const EncodedRecord record = encode_record(request, tokenizer(), {}, items({image(2, 2)}));
  REQUIRE(record.media_spans.size() == 1);
  CHECK(record.media_spans[0].end - record.media_spans[0].begin == 1);
}

TEST_CASE("encode_record: a state that is too long is cut, media never are") {
  const std::string_view body =
      R"({"state":"one two three four five six","images":["a"],"questions":{"q":{"type":"noul"}}})";
  const auto encode_at = [&](std::int64_t max_tokens) {
    return encode_record(parse_request(body), tokenizer(), {.max_tokens = max_tokens, .truncate_state = true},
                         items({image(4, 4)}));
  };
  const EncodedRecord whole = encode_at(1000), cut = encode_at(std::ssize(whole.input_ids) - 4);
  CHECK(cut.dropped_state_tokens == 4);
  CHECK(cut.media_spans == whole.media_spans);
  CHECK(text_of(cut, cut.questions.at(0).question_span) == "q");
  std::string message;
  try {
    encode_at(20);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kTooLong);
    message = error.what();
  }
  CHECK(message.find("smaller media, which take 4") != std::string::npos);
}

TEST_CASE("encode_record: a request whose media were not read is refused: another question would be answered") {
  const std::string body = R"({"state":"","questions":{"q":{"type":"noul"}},)";
  CHECK_NOTHROW(encode(body + R"("images":[],"videos":[]})"));
  for (const std::string name : {"images", "videos", "files"})
    CHECK_THROWS_WITH_AS(
        encode(body + '"' + name + R"(":["a","b"]})"),
        "request: has 2 images and videos, 0 of them were read; send text only where media are not read", Error);
}

}  // namespace
}  // namespace treble
