#include "cli/answer_table.h"

#include <doctest/doctest.h>

#include <string>

namespace treble::cli {
namespace {

Json response_of(const std::string& answers) {
  return parse_json(R"({"model":"clef","answers":)" + answers + R"(,"usage":{"input_tokens":3,"output_tokens":0}})",
                    "test", ErrorCode::kInternal);
}

TEST_CASE("answer_table: one line per question of each type") {
  const Json response = response_of(R"({
    "late": {"type": "noul", "noul": 0.25},
    "desk": {"type": "choice", "choice": "paid", "confidence": 0.8, "probabilities": {"open": 0.2, "paid": 0.8}},
    "how": {"type": "score", "score": 0.9, "confidence": 0.5, "legend": {"0": "calm", "1": {"a": 1}, "2": null},
            "probabilities": {"0": 0.3, "1": 0.5, "2": 0.2}}})");
  CHECK(answer_table(response, {.width = 100}) ==
        "question  answer  confidence              probabilities\n"
        "late      false       0.7500  ███████▌    false 0.7500, true 0.2500\n"
        "desk      paid        0.8000  ████████    paid 0.8000, open 0.2000\n"
        "how       0.9000      0.5000  █████       0 calm 0.3000, 1 {\"a\":1} 0.5000, 2 0.2000\n");
}

TEST_CASE("answer_table: a narrow line has no bar and cuts what is long") {
  const Json response =
      response_of(R"({"a question with a long name": {"type": "choice", "choice": "an answer, long too",
    "confidence": 1.0, "probabilities": {"an answer, long too": 1.0}}})");
  CHECK(answer_table(response, {.width = 48}) ==
        "question      answer        confidence  probabi…\n"
        "a question …  an answer, …      1.0000  an answ…\n");
}

TEST_CASE("answer_table: of many options the most probable are listed") {
  std::string probabilities;
  for (int i = 0; i < 255; ++i)
    probabilities += (i ? ",\"o" : "\"o") + std::to_string(i) + "\":0." + std::to_string(i + 100);
  const Json response = response_of(
      R"({"q": {"type": "choice", "choice": "o254", "confidence": 0.354, "probabilities": {)" + probabilities + "}}}");
  const std::string table = answer_table(response, {});
  CHECK(table.find("o254 0.3540, o253 0.3530") != std::string::npos);
  CHECK(table.find(", 225 more\n") != std::string::npos);
}

}  // namespace
}  // namespace treble::cli
