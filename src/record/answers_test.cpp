#include <doctest/doctest.h>
#include <treble/error.h>
#include <treble/record.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/mapped_file.h"

namespace treble {
namespace {

Json read_json(const std::string& path) {
  return parse_json(read_text_file(path), path, ErrorCode::kInternal);
}

/// A record as far as the answers need one: its length and, per question, the model's options as indices of the
/// request's.
EncodedRecord record_of(const Request& request, std::size_t num_tokens,
                        const std::vector<std::vector<std::int32_t>>& request_order) {
  EncodedRecord record;
  record.input_ids.resize(num_tokens);
  for (std::size_t q = 0; q < request.questions.size(); ++q) {
    EncodedQuestion& question = record.questions.emplace_back();
    question.id = request.questions[q].id;
    question.type = request.questions[q].type;
    question.request_order = request_order[q];
  }
  return record;
}

/// Where the ids of a JSON array stand among the options.
std::vector<std::int32_t> indices_of(const Json& ids, const std::vector<Option>& options) {
  std::vector<std::int32_t> indices;
  for (const Json& id : ids.as_array()) {
    const auto found =
        std::find_if(options.begin(), options.end(), [&](const Option& option) { return option.id == id.as_string(); });
    indices.push_back(static_cast<std::int32_t>(found - options.begin()));
  }
  return indices;
}

/// Logits whose softmax is the given distribution.
std::vector<float> logits_of(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(p > 0 ? static_cast<float>(std::log(p)) : -200.0F);
  return logits;
}

/// The answer of one question, options in the same order for the model, with this distribution.
Json answer_to(std::string_view question, const std::vector<double>& probabilities,
               Confidence confidence = Confidence::kMax) {
  const Request request = parse_request(std::string(R"({"state":"","questions":{"q":)").append(question).append("}}"));
  std::vector<std::int32_t> order;
  for (std::size_t i = 0; i < probabilities.size(); ++i) order.push_back(static_cast<std::int32_t>(i));
  const Answers answers = decode_answers(request, record_of(request, 10, {order}), {logits_of(probabilities)});
  return *to_json(answers, {.confidence = confidence}).find("answers")->find("q");
}

double confidence_of(std::string_view question, const std::vector<double>& probabilities, Confidence confidence) {
  return answer_to(question, probabilities, confidence).find("confidence")->as_double();
}

constexpr std::string_view kChoice3 = R"({"type":"choice","criteria":{"c":null,"b":null,"a":null}})";
constexpr std::string_view kChoice1 = R"({"type":"choice","criteria":{"c":null}})";
constexpr std::string_view kScore4 = R"({"type":"score","criteria":["w","x","y","z"]})";
constexpr std::string_view kScore1 = R"({"type":"score","criteria":["w"]})";

TEST_CASE("decode_answers: the reference's logits give the reference's response, digit by digit") {
  const Json requests = read_json(TREBLE_TEST_DATA "/micro/requests.json");
  const Json expected = read_json(TREBLE_TEST_DATA "/micro/expected_fp32.json");
  int num_compared = 0;
  for (const auto& [name, json] : requests.as_object()) {
    CAPTURE(name);
    const Json* entry = expected.find(name);
    REQUIRE(entry);
    const Request request = request_from_json(json);
    std::vector<std::vector<std::int32_t>> request_order;
    std::vector<std::vector<float>> logits;
    for (std::size_t q = 0; q < request.questions.size(); ++q) {
      const Question& question = request.questions[q];
      const Json& option_ids = *entry->find("questions")->as_array()[q].find("option_ids");
      request_order.push_back(indices_of(option_ids, question.options));
      logits.emplace_back();
      for (const Json& logit : entry->find("logits")->find(question.id)->as_array()) {
        logits.back().push_back(static_cast<float>(logit.as_double()));
      }
    }
    const EncodedRecord record = record_of(request, entry->find("input_ids")->as_array().size(), request_order);
    CHECK(dump_json(to_json(decode_answers(request, record, logits))) == dump_json(*entry->find("response")));
    ++num_compared;
  }
  CHECK(num_compared == 21);
}

TEST_CASE("to_json: an answer has its members in order and its probabilities in the request's order") {
  const Request request = parse_request(R"({"model":"m","state":"","questions":{
      "b":{"type":"choice","criteria":{"y":"1","x":"2","z":null}},
      "a":{"type":"score","criteria":[{"k":1.50},null]},
      "n":{"type":"noul"}}})");
  const Answers answers = decode_answers(request, record_of(request, 10, {{1, 0, 2}, {0, 1}, {0, 1}}),
                                         {logits_of({0.25, 0.125, 0.625}), logits_of({0.25, 0.75}), {0.5F, 0.5F}});
  CHECK(dump_json(to_json(answers, {.logits = true})) ==
        R"({"model":"m","answers":{)"
        R"("b":{"type":"choice","choice":"z","confidence":0.625,"probabilities":{"y":0.125,"x":0.25,"z":0.625}},)"
        R"("a":{"type":"score","score":0.75,"confidence":0.75,"legend":{"0":{"k":1.5},"1":null},)"
        R"("probabilities":{"0":0.25,"1":0.75}},)"
        R"("n":{"type":"noul","noul":0.5}},"usage":{"input_tokens":10,"output_tokens":0},)"
        R"("x_logits":{"b":[-1.3862943649291992,-2.079441547393799,-0.4700036346912384],)"
        R"("a":[-1.3862943649291992,-0.28768208622932434],"n":[0.5,0.5]}})");
  CHECK(to_json(answers).find("x_logits") == nullptr);
}

TEST_CASE("to_json: equal probabilities choose the option that the request names first") {
  CHECK(answer_to(kChoice3, {0.25, 0.375, 0.375}).find("choice")->as_string() == "b");
  CHECK(answer_to(kChoice3, {0.2, 0.2, 0.2}).find("choice")->as_string() == "c");
}

TEST_CASE("to_json: numbers are rounded last, half to even, and print as Python prints them") {
  const auto noul = [](double p) { return answer_to(R"({"type":"noul"})", {p, 1 - p}).find("noul")->number_text(); };
  CHECK(noul(1) == "1.0");
  CHECK(noul(0) == "0.0");
  CHECK(noul(1e-5) == "0.0");
  CHECK(noul(0.00006) == "0.0001");
  CHECK(noul(0.99994) == "0.9999");
  // 1/32 and 3/32 lie midway between two steps.
  const Json eighths = answer_to(R"({"type":"choice","criteria":{"a":0,"b":0,"c":0}})", {0.03125, 0.09375, 0.875});
  CHECK(dump_json(*eighths.find("probabilities")) == R"({"a":0.0312,"b":0.0938,"c":0.875})");
}

TEST_CASE("to_json: the score is the expected level") {
  CHECK(answer_to(kScore4, {0.0207, 0.1185, 0.5931, 0.2677}).find("score")->number_text() == "2.1078");
  CHECK(answer_to(kScore4, {0, 0, 0, 1}).find("score")->number_text() == "3.0");
  CHECK(answer_to(kScore1, {1}).find("score")->number_text() == "0.0");
}

TEST_CASE("to_json: confidence by System One is the way from even odds to certainty, for a score by distance") {
  const auto confidence = [](std::string_view question, const std::vector<double>& probabilities) {
    return confidence_of(question, probabilities, Confidence::kSystemOne);
  };
  CHECK(confidence(kChoice3, {0.0412, 0.9104, 0.0484}) == 0.8656);
  CHECK(confidence(kChoice3, {1. / 3, 1. / 3, 1. / 3}) == 0);
  CHECK(confidence(kChoice3, {0, 1, 0}) == 1);
  CHECK(confidence(kScore4, {0.0207, 0.1185, 0.5931, 0.2677}) == 0.5724);
  CHECK(confidence(kScore4, {0.5, 0, 0, 0.5}) == 0);  // further apart than even odds
  CHECK(confidence(kScore4, {0, 0, 0, 1}) == 1);
}

TEST_CASE("to_json: confidence by entropy is 0 for even odds and 1 for certainty") {
  const auto confidence = [](std::string_view question, const std::vector<double>& probabilities) {
    return confidence_of(question, probabilities, Confidence::kEntropy);
  };
  CHECK(dump_json(*answer_to(kChoice3, {1. / 3, 1. / 3, 1. / 3}, Confidence::kEntropy).find("confidence")) == "0.0");
  CHECK(confidence(kChoice3, {0, 1, 0}) == 1);
  CHECK(confidence(kScore4, {0.5, 0, 0, 0.5}) == 0.5);
  CHECK(confidence(kChoice3, {0.5, 0.25, 0.25}) == 0.0536);
}

TEST_CASE("to_json: a question with one option is answered with probability and confidence 1") {
  for (const Confidence kind : {Confidence::kMax, Confidence::kSystemOne, Confidence::kEntropy}) {
    for (const std::string_view question : {kChoice1, kScore1}) CHECK(confidence_of(question, {1}, kind) == 1);
  }
  CHECK(dump_json(answer_to(kChoice1, {1})) ==
        R"({"type":"choice","choice":"c","confidence":1.0,"probabilities":{"c":1.0}})");
}

TEST_CASE("decode_answers: large logits neither overflow nor lose the answer") {
  const Request request = parse_request(R"({"state":"","questions":{"q":{"type":"noul"}}})");
  const float largest = std::numeric_limits<float>::max();
  const Answers answers = decode_answers(request, record_of(request, 10, {{0, 1}}), {{largest, -largest}});
  CHECK(answers.answers.at(0).probabilities == std::vector<double>{1, 0});
}

TEST_CASE("decode_answers: logits that are not as many as the options are our mistake, not an answer") {
  const Request request = parse_request(R"({"state":"","questions":{"q":{"type":"noul"}}})");
  const EncodedRecord record = record_of(request, 10, {{0, 1}});
  const std::vector<std::vector<std::vector<float>>> faulty = {{}, {{1}}, {{1, 2, 3}}, {{1, 2}, {1, 2}}};
  for (const auto& logits : faulty) {
    try {
      decode_answers(request, record, logits);
      FAIL("answered");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kInternal);
      CHECK(std::string(error.what()).starts_with("answers: "));
    }
  }
}

TEST_CASE("decode_answers: a logit that is not finite is a broken release, and no answer") {
  const Request request = parse_request(R"({"state":"","questions":{"q":{"type":"noul"}}})");
  const EncodedRecord record = record_of(request, 10, {{0, 1}});
  const float infinity = std::numeric_limits<float>::infinity();
  for (const std::vector<float>& logits : {std::vector<float>{NAN, 0}, {infinity, 0}, {0, -infinity}}) {
    try {
      decode_answers(request, record, {logits});
      FAIL("answered");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kCheckpoint);
      CHECK(std::string(error.what()).find("not finite") != std::string::npos);
    }
  }
}

}  // namespace
}  // namespace treble
