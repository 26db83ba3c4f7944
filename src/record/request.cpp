#include <fmt/format.h>
#include <treble/error.h>
#include <treble/record.h>

#include <algorithm>
#include <string>
#include <utility>

namespace treble {
namespace {

constexpr int kMaxDepth = 65;  // the request's own braces and 64 levels of state

/// What the model reads where a noul's criteria leave a side out.
constexpr std::pair<const char*, const char*> kNoulSides[] = {
    {"true", "The proposition is true or the answer is yes."},
    {"false", "The proposition is false or the answer is no."},
};

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> problem, Args&&... args) {
  throw Error(ErrorCode::kRequest, "request: " + fmt::format(problem, std::forward<Args>(args)...));
}

/// A caller's text in quotes, cut where it is too long for a message.
std::string in_quotes(std::string_view text) {
  constexpr std::size_t kMaxBytes = 60;
  std::size_t end = std::min(text.size(), kMaxBytes);
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // whole characters
  const std::string_view mark = end < text.size() ? "…" : "";
  return dump_json(Json(std::string(text.substr(0, end)).append(mark)));
}

/// questions.urgency, or questions["how soon?"] where the id is no plain word.
std::string path_of(std::string_view question_id) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  if (question_id.size() <= 60 && std::all_of(question_id.begin(), question_id.end(), is_plain)) {
    return fmt::format("questions.{}", question_id);
  }
  return fmt::format("questions[{}]", in_quotes(question_id));
}

/// What a message calls a value's type; a member that is not there is "missing".
std::string_view type_name(const Json* value) {
  return value ? value->type_name() : "missing";
}

bool is_absent(const Json* value) {
  return !value || value->is_null();
}

bool is_empty(const Json* value) {
  return is_absent(value) || (value->is_array() && value->as_array().empty()) ||
         (value->is_object() && value->as_object().empty());
}

/// The first key that occurs twice; nullptr if there is none.
const std::string* find_duplicate(const Json::Object& members) {
  std::vector<const std::string*> keys;
  for (const Json::Member& member : members) keys.push_back(&member.first);
  std::sort(keys.begin(), keys.end(), [](const auto* a, const auto* b) { return *a < *b; });
  const auto found =
      std::adjacent_find(keys.begin(), keys.end(), [](const auto* a, const auto* b) { return *a == *b; });
  return found == keys.end() ? nullptr : *found;
}

// ---- the three kinds of criteria ------------------------------------------------------------------------------------

std::vector<Option> read_noul(const std::string& path, const Json* criteria) {
  const auto is_side = [](const Json::Member& member) { return member.first == "true" || member.first == "false"; };
  Json::Object sides;
  if (!is_absent(criteria)) {
    if (!criteria->is_object()) {
      refuse(
          R"({}.criteria is {}; a noul takes an object like {{"true": "it is late", "false": "it is not"}}, or none)",
          path, criteria->type_name());
    }
    const Json::Object& members = criteria->as_object();
    std::copy_if(members.begin(), members.end(), std::back_inserter(sides), is_side);
    if (sides.empty() && !members.empty()) {
      refuse(R"({}.criteria has neither "true" nor "false"; a noul takes one of them, both, or no criteria)", path);
    }
    if (const std::string* side = find_duplicate(sides)) {
      refuse("{}.criteria has two sides {}; give each once", path, in_quotes(*side));
    }
  }
  std::vector<Option> options;
  for (const auto& [id, description] : kNoulSides) {
    const auto given = std::find_if(sides.begin(), sides.end(), [&](const auto& side) { return side.first == id; });
    options.push_back({id, given == sides.end() ? Json(description) : given->second});
  }
  return options;
}

std::vector<Option> read_choice(const std::string& path, const Json* criteria, const RequestLimits& limits) {
  if (!criteria || !criteria->is_object()) {
    refuse(R"({}.criteria is {}; a choice takes an object from label to description or null, )"
           R"(like {{"paid": "the money is here", "open": null}})",
           path, type_name(criteria));
  }
  const Json::Object& members = criteria->as_object();
  if (members.empty() || members.size() > limits.max_options) {
    refuse("{}.criteria has {} options; a choice takes 1 to {}", path, members.size(), limits.max_options);
  }
  if (const std::string* label = find_duplicate(members)) {
    refuse("{}.criteria has two options {}; labels must differ", path, in_quotes(*label));
  }
  std::vector<Option> options;
  for (const auto& [label, description] : members) {
    if (label.empty()) refuse("{}.criteria has an option without a label; give it one", path);
    options.push_back({label, description});
  }
  return options;
}

std::vector<Option> read_score(const std::string& path, const Json* criteria, const RequestLimits& limits) {
  if (!criteria || !criteria->is_array()) {
    refuse(R"({}.criteria is {}; a score takes an array of levels, lowest first, like ["calm", "cross", "furious"])",
           path, type_name(criteria));
  }
  const Json::Array& levels = criteria->as_array();
  if (levels.empty() || levels.size() > limits.max_score_levels) {
    refuse("{}.criteria has {} levels; a score takes 1 to {}", path, levels.size(), limits.max_score_levels);
  }
  std::vector<Option> options;
  for (const Json& level : levels) options.push_back({std::to_string(options.size()), level});
  return options;
}

// ---- the request ----------------------------------------------------------------------------------------------------

QuestionType read_type(const std::string& path, const Json* type) {
  constexpr const char* kExpected = R"("noul", "choice" or "score")";
  if (!type || !type->is_string()) refuse("{}.type is {}, expected {}", path, type_name(type), kExpected);
  for (const QuestionType known : {QuestionType::kNoul, QuestionType::kChoice, QuestionType::kScore}) {
    if (type->as_string() == to_string(known)) return known;
  }
  refuse("{}.type is {}, expected {}", path, in_quotes(type->as_string()), kExpected);
}

Question read_question(const std::string& id, const Json& json, const RequestLimits& limits) {
  if (id.empty()) refuse("questions has an empty id; name every question");
  const std::string path = path_of(id);
  if (!json.is_object()) refuse(R"({} is {}, expected an object like {{"type": "noul"}})", path, json.type_name());

  Question question{.id = id, .type = read_type(path, json.find("type")), .instructions = {}, .options = {}};
  if (const Json* instructions = json.find("instructions")) question.instructions = *instructions;
  const Json* criteria = json.find("criteria");
  switch (question.type) {
    case QuestionType::kNoul:
      question.options = read_noul(path, criteria);
      break;
    case QuestionType::kChoice:
      question.options = read_choice(path, criteria, limits);
      break;
    case QuestionType::kScore:
      question.options = read_score(path, criteria, limits);
      break;
  }
  return question;
}

std::vector<Question> read_questions(const Json* json, const RequestLimits& limits) {
  if (!json || !json->is_object()) {
    refuse(R"(questions is {}, expected an object from id to question, like {{"urgent": {{"type": "noul"}}}})",
           type_name(json));
  }
  const Json::Object& members = json->as_object();
  if (members.empty() || members.size() > limits.max_questions) {
    refuse("questions has {} entries, expected 1 to {}", members.size(), limits.max_questions);
  }
  if (const std::string* id = find_duplicate(members))
    refuse("questions has the id {} twice; ids must differ", in_quotes(*id));

  std::vector<Question> questions;
  for (const auto& [id, question] : members) questions.push_back(read_question(id, question, limits));
  return questions;
}

Json read_media(const Json& request, const char* name) {
  const Json* media = request.find(name);
  if (is_absent(media)) return {};
  if (!media->is_array()) refuse("{} is {}, expected an array", name, media->type_name());
  return *media;
}

}  // namespace

std::string_view to_string(QuestionType type) {
  switch (type) {
    case QuestionType::kNoul:
      return "noul";
    case QuestionType::kChoice:
      return "choice";
    case QuestionType::kScore:
      return "score";
  }
  return "";
}

Request parse_request(std::string_view json, const RequestLimits& limits) {
  return request_from_json(parse_json(json, "request", ErrorCode::kRequest, {.max_depth = kMaxDepth}), limits);
}

Request request_from_json(const Json& json, const RequestLimits& limits) {
  if (!json.is_object()) refuse(R"(the body is {}, expected an object with "state" and "questions")", json.type_name());

  Request request;
  if (const Json* model = json.find("model")) {
    if (!model->is_string()) refuse("model is {}, expected a string", model->type_name());
    request.model = model->as_string();
  }
  const Json* state = json.find("state");
  if (!state || !(state->is_string() || state->is_object() || state->is_array())) {
    refuse("state is {}, expected a string, an object or an array", type_name(state));
  }
  request.state = *state;
  request.questions = read_questions(json.find("questions"), limits);

  request.images = read_media(json, "images");
  request.videos = read_media(json, "videos");
  const Json files = read_media(json, "files");  // llama.cpp's name for images
  if (!is_empty(&files)) {
    if (!is_empty(&request.images)) refuse("images and files are two names for one thing; send one of them");
    request.images = files;
  }
  if (const Json* kwargs = json.find("media_kwargs"); !is_absent(kwargs)) {
    if (!kwargs->is_object()) refuse("media_kwargs is {}, expected an object", kwargs->type_name());
    request.media_kwargs = *kwargs;
  }
  if (!is_empty(json.find("audio")))
    refuse("audio is sent, but the model does not hear; put a transcript into \"state\"");
  if (!is_empty(json.find("assets"))) refuse("assets are not supported; send pictures as \"images\"");
  return request;
}

}  // namespace treble
