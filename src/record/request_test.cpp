#include <doctest/doctest.h>
#include <treble/error.h>
#include <treble/record.h>

#include <string>
#include <string_view>

namespace treble {
namespace {

/// The message of the error that a body causes; "" if it is a valid request.
std::string error_of(std::string_view body) {
  try {
    parse_request(body);
    return "";
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kRequest);
    return error.what();
  }
}

/// A request whose only question, named q, is this.
std::string asking(std::string_view question) {
  return std::string(R"({"state":"s","questions":{"q":)").append(question).append("}}");
}

Question parse_question(std::string_view question) {
  return parse_request(asking(question)).questions.at(0);
}

/// {"o0":null,"o1":null,...}
std::string labels(int count) {
  std::string criteria = "{";
  for (int i = 0; i < count; ++i) criteria += (i ? ",\"o" : "\"o") + std::to_string(i) + "\":null";
  return criteria + "}";
}

/// [0,0,...]
std::string levels(int count) {
  std::string criteria = "[";
  for (int i = 0; i < count; ++i) criteria += i ? ",0" : "0";
  return criteria + "]";
}

TEST_CASE("parse_request: members come out as sent, questions and options in the request's order") {
  const Request request = parse_request(R"({
    "model": "clef-flash", "state": {"b": 1.50, "a": []}, "unknown": 1, "images": ["x"], "videos": null,
    "questions": {
      "z q": {"type": "choice", "criteria": {"b": null, "a": {"k": 1}}, "instructions": ["which?"], "unknown": {}},
      "é": {"type": "score", "criteria": ["low", null, {"x": 2.0}]},
      "a": {"type": "noul", "instructions": null}
    }})");
  CHECK(request.model == "clef-flash");
  CHECK(dump_json(request.state) == R"({"b":1.5,"a":[]})");
  CHECK(dump_json(request.images) == R"(["x"])");
  CHECK(request.videos.is_null());
  REQUIRE(request.questions.size() == 3);

  const Question& choice = request.questions[0];
  CHECK(choice.id == "z q");
  CHECK(choice.type == QuestionType::kChoice);
  CHECK(dump_json(choice.instructions) == R"(["which?"])");
  REQUIRE(choice.options.size() == 2);
  CHECK(choice.options[0].id == "b");
  CHECK(choice.options[0].description.is_null());
  CHECK(dump_json(choice.options[1].description) == R"({"k":1})");

  const Question& score = request.questions[1];
  CHECK(score.id == "é");
  REQUIRE(score.options.size() == 3);
  CHECK(score.options[2].id == "2");
  CHECK(score.options[1].description.is_null());
  CHECK(request.questions[2].options.size() == 2);
}

TEST_CASE("parse_request: a missing model is clef, and every other string is taken") {
  CHECK(parse_request(asking(R"({"type":"noul"})")).model == "clef");
  CHECK(parse_request(R"({"model":"jev-latest","state":"","questions":{"q":{"type":"noul"}}})").model == "jev-latest");
}

TEST_CASE("parse_request: a state is a string, an object or an array, also an empty one") {
  for (const char* state : {"\"\"", "\"x\"", "{}", "[]", "[{\"role\":\"user\"}]"}) {
    CHECK(error_of(std::string(R"({"questions":{"q":{"type":"noul"}},"state":)") + state + "}") == "");
  }
}

TEST_CASE("parse_request: the criteria of a noul replace the default descriptions side by side") {
  const Question plain = parse_question(R"({"type":"noul"})");
  CHECK(plain.options.at(0).id == "true");
  CHECK(plain.options[0].description.as_string() == "The proposition is true or the answer is yes.");
  CHECK(plain.options.at(1).id == "false");
  CHECK(plain.options[1].description.as_string() == "The proposition is false or the answer is no.");

  for (const char* criteria : {"null", "{}"}) {
    const Question same = parse_question(std::string(R"({"type":"noul","criteria":)") + criteria + "}");
    CHECK(same.options.at(1).description == plain.options[1].description);
  }
  const Question one = parse_question(R"({"type":"noul","criteria":{"false":"no","maybe":"?"}})");
  CHECK(one.options.at(0).description == plain.options[0].description);
  CHECK(one.options.at(1).description.as_string() == "no");
  const Question both = parse_question(R"({"type":"noul","criteria":{"false":{"a":1},"true":null}})");
  CHECK(both.options.at(0).id == "true");
  CHECK(both.options[0].description.is_null());
  CHECK(both.options.at(1).description.is_object());
}

TEST_CASE("parse_request: a choice takes 1 to 255 options, a score 1 to 10 levels") {
  for (const int count : {1, 2, 255}) {
    CHECK(parse_question(R"({"type":"choice","criteria":)" + labels(count) + "}").options.size() == count);
  }
  for (const int count : {1, 2, 10}) {
    CHECK(parse_question(R"({"type":"score","criteria":)" + levels(count) + "}").options.size() == count);
  }
  CHECK(error_of(asking(R"({"type":"choice","criteria":)" + labels(256) + "}")) ==
        "request: questions.q.criteria has 256 options; a choice takes 1 to 255");
  CHECK(error_of(asking(R"({"type":"choice","criteria":{}})")) ==
        "request: questions.q.criteria has 0 options; a choice takes 1 to 255");
  CHECK(error_of(asking(R"({"type":"score","criteria":)" + levels(11) + "}")) ==
        "request: questions.q.criteria has 11 levels; a score takes 1 to 10");
  CHECK(error_of(asking(R"({"type":"score","criteria":[]})")) ==
        "request: questions.q.criteria has 0 levels; a score takes 1 to 10");
}

TEST_CASE("parse_request: the limits are the caller's") {
  const RequestLimits limits{.max_questions = 1, .max_options = 2, .max_score_levels = 3};
  const auto refused = [&](const std::string& body) {
    try {
      parse_request(body, limits);
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  CHECK(refused(asking(R"({"type":"choice","criteria":)" + labels(2) + "}")) == "");
  CHECK(refused(asking(R"({"type":"choice","criteria":)" + labels(3) + "}")) ==
        "request: questions.q.criteria has 3 options; a choice takes 1 to 2");
  CHECK(refused(asking(R"({"type":"score","criteria":)" + levels(4) + "}")) ==
        "request: questions.q.criteria has 4 levels; a score takes 1 to 3");
  CHECK(refused(R"({"state":"","questions":{"a":{"type":"noul"},"b":{"type":"noul"}}})") ==
        "request: questions has 2 entries, expected 1 to 1");
}

TEST_CASE("parse_request: a body without its essentials is refused by name") {
  CHECK(error_of("[]") == R"(request: the body is an array, expected an object with "state" and "questions")");
  CHECK(error_of("7") == R"(request: the body is a number, expected an object with "state" and "questions")");
  CHECK(error_of("") == "request: the JSON is empty, expected a value");
  CHECK(error_of(R"({"questions":{"q":{"type":"noul"}}})") ==
        "request: state is missing, expected a string, an object or an array");
  for (const auto& [state, type] : {std::pair{"null", "null"}, {"1", "a number"}, {"true", "a boolean"}}) {
    CHECK(error_of(std::string(R"({"questions":{"q":{"type":"noul"}},"state":)") + state + "}") ==
          std::string("request: state is ") + type + ", expected a string, an object or an array");
  }
  const std::string expected = R"(, expected an object from id to question, like {"urgent": {"type": "noul"}})";
  CHECK(error_of(R"({"state":""})") == "request: questions is missing" + expected);
  CHECK(error_of(R"({"state":"","questions":[]})") == "request: questions is an array" + expected);
  CHECK(error_of(R"({"state":"","questions":null})") == "request: questions is null" + expected);
  CHECK(error_of(R"({"state":"","questions":{}})") == "request: questions has 0 entries, expected 1 to 256");
  CHECK(error_of(R"({"model":5,"state":"","questions":{"q":{"type":"noul"}}})") ==
        "request: model is a number, expected a string");
  CHECK(error_of(R"({"model":null,"state":"","questions":{"q":{"type":"noul"}}})") ==
        "request: model is null, expected a string");
}

TEST_CASE("parse_request: a question of no known type is refused") {
  CHECK(error_of(asking("\"noul\"")) ==
        R"(request: questions.q is a string, expected an object like {"type": "noul"})");
  CHECK(error_of(asking("{}")) == R"(request: questions.q.type is missing, expected "noul", "choice" or "score")");
  CHECK(error_of(asking(R"({"type":1})")) ==
        R"(request: questions.q.type is a number, expected "noul", "choice" or "score")");
  for (const std::string type : {"boolean", "box", "Noul", "", "noul "}) {
    CHECK(error_of(asking(R"({"type":")" + type + R"(","criteria":{"a":null}})")) ==
          "request: questions.q.type is \"" + type + R"(", expected "noul", "choice" or "score")");
  }
}

TEST_CASE("parse_request: criteria of the wrong shape are refused with the right one") {
  const std::string noul = R"(; a noul takes an object like {"true": "it is late", "false": "it is not"}, or none)";
  CHECK(error_of(asking(R"({"type":"noul","criteria":["a"]})")) == "request: questions.q.criteria is an array" + noul);
  CHECK(error_of(asking(R"({"type":"noul","criteria":"a"})")) == "request: questions.q.criteria is a string" + noul);
  CHECK(error_of(asking(R"({"type":"noul","criteria":{"yes":"a","no":"b"}})")) ==
        R"(request: questions.q.criteria has neither "true" nor "false"; )"
        R"(a noul takes one of them, both, or no criteria)");

  const std::string choice = R"(; a choice takes an object from label to description or null, )"
                             R"(like {"paid": "the money is here", "open": null})";
  CHECK(error_of(asking(R"({"type":"choice"})")) == "request: questions.q.criteria is missing" + choice);
  CHECK(error_of(asking(R"({"type":"choice","criteria":null})")) == "request: questions.q.criteria is null" + choice);
  CHECK(error_of(asking(R"({"type":"choice","criteria":["a","b"]})")) ==
        "request: questions.q.criteria is an array" + choice);

  const std::string score = R"(; a score takes an array of levels, lowest first, like ["calm", "cross", "furious"])";
  CHECK(error_of(asking(R"({"type":"score"})")) == "request: questions.q.criteria is missing" + score);
  CHECK(error_of(asking(R"({"type":"score","criteria":{"0":"a"}})")) ==
        "request: questions.q.criteria is an object" + score);
}

TEST_CASE("parse_request: empty and repeated ids are refused, repeated members elsewhere keep the last") {
  CHECK(error_of(R"({"state":"","questions":{"":{"type":"noul"}}})") ==
        "request: questions has an empty id; name every question");
  CHECK(error_of(R"({"state":"","questions":{"a":{"type":"noul"},"b":{"type":"noul"},"\u0061":{"type":"noul"}}})") ==
        R"(request: questions has the id "a" twice; ids must differ)");
  CHECK(error_of(asking(R"({"type":"choice","criteria":{"":null}})")) ==
        "request: questions.q.criteria has an option without a label; give it one");
  CHECK(error_of(asking(R"({"type":"choice","criteria":{"x":1,"y":2,"x":3}})")) ==
        R"(request: questions.q.criteria has two options "x"; labels must differ)");
  CHECK(error_of(asking(R"({"type":"noul","criteria":{"true":1,"true":2}})")) ==
        R"(request: questions.q.criteria has two sides "true"; give each once)");
  CHECK(error_of(asking(R"({"type":"noul","criteria":{"true":1,"x":1,"x":2}})")) == "");
  CHECK(parse_request(R"({"state":1,"state":"last","questions":{"q":{"type":"noul"}}})").state.as_string() == "last");
}

TEST_CASE("parse_request: an id that is no plain word is quoted in messages, and a long one is cut at a character") {
  CHECK(error_of(R"({"state":"","questions":{"how \"soon\"?\n":{}}})")
            .starts_with(R"(request: questions["how \"soon\"?\n"].type is missing)"));
  std::string id = "x";
  for (int i = 0; i < 100; ++i) id += "é";
  std::string kept = "x";
  for (int i = 0; i < 29; ++i) kept += "é";
  CHECK(error_of(R"({"state":"","questions":{")" + id + R"(":{}}})")
            .starts_with("request: questions[\"" + kept + "…\"]."));
}

TEST_CASE("parse_request: media are arrays or null; audio and assets are refused unless empty") {
  const auto with = [](std::string_view members) {
    return std::string(R"({"state":"","questions":{"q":{"type":"noul"}},)").append(members).append("}");
  };
  CHECK(dump_json(parse_request(with(R"("files":["a"])")).images) == R"(["a"])");
  CHECK(dump_json(parse_request(with(R"("files":[],"images":["a"],"videos":["b"])")).images) == R"(["a"])");
  CHECK(dump_json(parse_request(with(R"("videos":["b"])")).videos) == R"(["b"])");
  CHECK(error_of(with(R"("images":null,"videos":[],"files":null,"audio":[],"assets":{})")) == "");
  CHECK(error_of(with(R"("images":"a")")) == "request: images is a string, expected an array");
  CHECK(error_of(with(R"("videos":{})")) == "request: videos is an object, expected an array");
  CHECK(error_of(with(R"("files":1)")) == "request: files is a number, expected an array");
  CHECK(error_of(with(R"("files":["a"],"images":["b"])")) ==
        "request: images and files are two names for one thing; send one of them");
  CHECK(error_of(with(R"("audio":["a"])")) ==
        R"(request: audio is sent, but the model does not hear; put a transcript into "state")");
  CHECK(error_of(with(R"("assets":{"a":{}})")) == R"(request: assets are not supported; send pictures as "images")");
}

TEST_CASE("parse_request: a state may be 64 levels deep, and a deeper one is an error, not a crash") {
  const auto with_levels = [](std::size_t levels) {
    return R"({"questions":{"q":{"type":"noul"}},"state":)" + std::string(levels, '[') + std::string(levels, ']') + "}";
  };
  CHECK(error_of(with_levels(64)) == "");
  CHECK(error_of(with_levels(65)) != "");
  CHECK(error_of(with_levels(100'000)) != "");
}

TEST_CASE("parse_request: a request that is cut or changed at any byte is read or refused, never worse") {
  const std::string body = R"({"model":"clef","state":{"n":-1.5e3,"t":"\u00e9\ud83d\ude00"},"images":[],"questions":{)"
                           R"("a":{"type":"noul","criteria":{"true":null}},"b":{"type":"choice","criteria":{"x":"y"}},)"
                           R"("c":{"type":"score","instructions":"i","criteria":["l",{"h":2}]}}})";
  REQUIRE(error_of(body) == "");
  for (std::size_t size = 0; size < body.size(); ++size) CHECK(error_of(body.substr(0, size)) != "");
  for (std::size_t at = 0; at < body.size(); ++at) {
    for (const char c : std::string_view("\0\"\\[]{},:0n \x80\xff", 14)) {
      std::string changed = body;
      changed[at] = c;
      CHECK_NOTHROW(error_of(changed));
    }
  }
}

TEST_CASE("to_string: the three kinds have the names of the request") {
  CHECK(to_string(QuestionType::kNoul) == "noul");
  CHECK(to_string(QuestionType::kChoice) == "choice");
  CHECK(to_string(QuestionType::kScore) == "score");
}

}  // namespace
}  // namespace treble
