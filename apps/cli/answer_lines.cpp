#include "cli/answer_lines.h"

#include <fmt/format.h>
#include <treble/error.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "cli/progress_bar.h"
#include "cli/status.h"
#include "cli/terminal.h"

namespace treble::cli {
namespace {

constexpr std::string_view kErrorPrefix = R"({"error":)";

Json error_object(const Error& error, const Line& line) {
  return Json::Object{{"error", Json::Object{{"code", code_name(error.code())},
                                             {"message", error.what()},
                                             {"line", Json::integer(line.number)}}}};
}

Request request_of(const Line& line) {
  if (line.is_too_long) {
    throw Error(ErrorCode::kRequest,
                fmt::format("request: the line is longer than {} MiB; shorten \"state\"", kMaxRequestBytes >> 20));
  }
  return parse_request(line.text);
}

/// Whether a line of an earlier run could be the response to a request: it has the same questions, or it is the error
/// of that line.
bool is_response_to(const Line& response, const Line& request) {
  if (response.is_too_long) return true;  // cannot be looked at
  try {
    const Json body = parse_json(response.text, "answer", ErrorCode::kRequest, {.max_depth = 80});
    if (const Json* error = body.find("error")) {
      const Json* number = error->find("line");
      long long value = 0;
      return number && number->is_number() && number->as_int64(value) && value == request.number;
    }
    const Json* answers = body.find("answers");
    const std::vector<Question> questions = request_of(request).questions;
    return answers && answers->is_object() &&
           std::ranges::equal(answers->as_object(), questions, {}, &Json::Member::first, &Question::id);
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

AnswerLines::AnswerLines(Options options)
    : options_(std::move(options)), requests_(File::input(options_.requests)), reader_(requests_) {
  if (options_.out.empty()) return;
  out_.emplace(File::output(options_.out));
  if (out_->is_same_file(requests_)) {
    throw Error(ErrorCode::kArgument,
                fmt::format("answer: --out {} is the file of requests; name another", options_.out));
  }
  if (options_.resume) {
    skip_answered();
  } else if (out_->size() > 0 && !options_.force) {
    throw Error(ErrorCode::kArgument, fmt::format("answer: --out {} has text already; give --resume to continue it or "
                                                  "--force to overwrite it",
                                                  options_.out));
  }
}

void AnswerLines::skip_answered() {
  LineReader written(*out_);
  Line response, request;
  while (written.next(response)) {
    if (!response.is_complete) {  // what a stopped run was writing
      if (!response.text.empty() && !response.text.starts_with('{')) {
        throw Error(ErrorCode::kArgument,
                    fmt::format("answer: line {} of --out {} is not the beginning of an answer; is "
                                "it the output of another run?",
                                response.number, options_.out));
      }
      break;
    }
    if (!reader_.next_filled(request)) {
      throw Error(ErrorCode::kArgument,
                  fmt::format("answer: --out {} has more lines than the {} requests of {}; is it the "
                              "output of another run?",
                              options_.out, num_lines_, requests_.name()));
    }
    if (!is_response_to(response, request)) {
      throw Error(
          ErrorCode::kArgument,
          fmt::format("answer: line {} of --out {} does not belong to line {} of {}; is it the output of another run?",
                      response.number, options_.out, request.number, requests_.name()));
    }
    ++num_lines_;
    num_errors_ += response.text.starts_with(kErrorPrefix) ? 1 : 0;
    out_bytes_ = response.end;
  }
  begin_bytes_ = request.end;
}

Json AnswerLines::respond(const Engine& engine, const Line& line, ProgressBar& bar) {
  try {
    Request request = request_of(line);
    request.media_folder = folder_of_requests(options_.requests);
    const Answers answers = engine.answer(request);
    if (answers.dropped_state_tokens > 0) {
      bar.clear();
      report(fmt::format("line {}: {} tokens of the state were cut off", line.number, answers.dropped_state_tokens));
    }
    return to_json(answers, options_.format);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kRequest && error.code() != ErrorCode::kTooLong) {
      throw Error(error.code(), fmt::format("{} (at line {} of {})", error.what(), line.number, requests_.name()));
    }
    ++num_errors_;
    return error_object(error, line);
  }
}

void AnswerLines::run(const Engine& engine) {
  if (out_) out_->truncate(out_bytes_);
  File standard_output = File::standard_output();
  File& out = out_ ? *out_ : standard_output;
  // Answers that scroll by show well enough how far it is.
  const bool is_bar_wanted = out_ || !is_terminal(STDOUT_FILENO);
  ProgressBar bar(is_bar_wanted, begin_bytes_, requests_.size());

  std::int64_t answered = 0;
  Line line;
  while (reader_.next_filled(line)) {
    out.write(dump_json(respond(engine, line, bar)) + '\n');
    ++num_lines_;
    bar.update(++answered, line.end);
  }
  bar.clear();
  if (out_) out_->keep();
  if (num_errors_ > 0) {
    throw Error(ErrorCode::kRequest,
                fmt::format("answer: {} of {} lines were not answered; each has an error object in its "
                            "place",
                            num_errors_, num_lines_));
  }
}

}  // namespace treble::cli
