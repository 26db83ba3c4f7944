#include "eval/records.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>
#include <fstream>
#include <system_error>

namespace treble::eval {
namespace {

constexpr int kMaxDepth = 67;  // the record's braces and a request's 65 levels; one to spare
constexpr std::size_t kMostOptionsShown = 10;

[[noreturn]] void refuse(const std::string& problem) {
  throw Error(ErrorCode::kRequest, problem);
}

/// The option that the label names; nullopt if the label is of the wrong kind or names none.
std::optional<std::size_t> find_option(const Question& question, const Json& label) {
  std::string id;
  switch (question.type) {
    case QuestionType::kNoul:
      if (!label.is_bool()) return std::nullopt;
      id = label.as_bool() ? "true" : "false";
      break;
    case QuestionType::kChoice:
      if (!label.is_string()) return std::nullopt;
      id = label.as_string();
      break;
    case QuestionType::kScore:
      long long level = 0;
      if (!label.is_number() || !label.as_int64(level)) return std::nullopt;
      id = std::to_string(level);
      break;
  }
  const auto found = std::ranges::find(question.options, id, &Option::id);
  if (found == question.options.end()) return std::nullopt;
  return static_cast<std::size_t>(found - question.options.begin());
}

/// What a label of the question may be, for messages.
std::string describe_labels(const Question& question) {
  if (question.type == QuestionType::kNoul) return "true or false";
  if (question.type == QuestionType::kScore) return fmt::format("a level from 0 to {}", question.options.size() - 1);
  std::string text = "one of ";
  const std::size_t count = std::min(question.options.size(), kMostOptionsShown);
  for (std::size_t i = 0; i < count; ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", dump_json(question.options[i].id));
  return count < question.options.size() ? fmt::format("{} and {} more", text, question.options.size() - count) : text;
}

void read_answers(const Json& answers, LabelledRecord& record) {
  if (!answers.is_object()) refuse(fmt::format("answers is {}, expected an object", answers.type_name()));
  const std::vector<Question>& questions = record.request.questions;
  for (const auto& [id, label] : answers.as_object()) {
    const auto question = std::ranges::find(questions, id, &Question::id);
    if (question == questions.end()) refuse(fmt::format("answers has {}, which is no question", dump_json(id)));
    if (record.labels[static_cast<std::size_t>(question - questions.begin())])
      refuse(fmt::format("answers has {} twice, expected one label", dump_json(id)));
    const std::optional<std::size_t> option = find_option(*question, label);
    if (!option)
      refuse(
          fmt::format("answers[{}] is {}, expected {}", dump_json(id), dump_json(label), describe_labels(*question)));
    record.labels[static_cast<std::size_t>(question - questions.begin())] = option;
  }
}

std::string read_name(const Json& body, const char* member) {
  const Json* name = body.find(member);
  if (!name || name->is_null()) return "";
  if (!name->is_string()) refuse(fmt::format("{} is {}, expected a string", member, name->type_name()));
  return name->as_string();
}

bool has_media(const Json& media) {
  return media.is_array() && !media.as_array().empty();
}

LabelledRecord read_record(std::string_view line) {
  const Json body = parse_json(line, "record", ErrorCode::kRequest, {.max_depth = kMaxDepth});
  const Json* request = body.find("request");
  LabelledRecord record;
  record.request = request_from_json(request ? *request : body);
  record.set = read_name(body, "set");
  record.family = read_name(body, "family");
  record.labels.resize(record.request.questions.size());
  if (const Json* answers = body.find("answers")) read_answers(*answers, record);
  return record;
}

}  // namespace

LabelledRecord parse_record(std::string_view line, const std::string& place) {
  try {
    LabelledRecord record = read_record(line);
    record.place = place;
    return record;
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("eval: {}: {}", place, error.what()));
  }
}

RecordFiles read_records(std::span<const std::filesystem::path> files, bool with_media) {
  RecordFiles found;
  for (const std::filesystem::path& path : files) {
    std::ifstream file(path);
    std::error_code ignored;
    if (!file || std::filesystem::is_directory(path, ignored))
      throw Error(ErrorCode::kArgument, fmt::format("eval: {} cannot be read; give a .jsonl file", path.string()));
    std::string line;
    for (std::int64_t number = 1; std::getline(file, line); ++number) {
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      LabelledRecord record = parse_record(line, fmt::format("{} line {}", path.string(), number));
      record.request.media_folder = path.has_parent_path() ? path.parent_path() : ".";
      if (!with_media && has_media(record.request.videos)) {
        ++found.num_video_records;
      } else if (!with_media && has_media(record.request.images)) {
        ++found.num_image_records;
      } else {
        found.records.push_back(std::move(record));
      }
    }
  }
  if (found.records.empty()) {
    const std::size_t num_skipped = found.num_image_records + found.num_video_records;
    throw Error(
        ErrorCode::kArgument,
        num_skipped == 0
            ? std::string("eval: the files hold no record; give lines of {\"request\": ..., \"answers\": ...}")
            : fmt::format(
                  "eval: all {} records have images or videos, which a release without a vision tower does not read",
                  num_skipped));
  }
  return found;
}

}  // namespace treble::eval
