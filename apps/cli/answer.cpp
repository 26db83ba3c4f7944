#include <fmt/format.h>
#include <treble/engine.h>
#include <treble/record.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "cli/answer_lines.h"
#include "cli/answer_table.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/loading_bar.h"
#include "cli/options.h"
#include "cli/terminal.h"

namespace treble::cli {
namespace {

const CommandText kAnswerText = {
    .name = "answer",
    .summary = "answer the questions of a JSON request",
    .usage =
        "--model DIR [options] REQUEST.json        (\"-\" reads standard input)\n"
        "       treble answer --model DIR [options] REQUESTS.jsonl      (one request a line)",
    .notes =
        "A .jsonl file is answered line by line, in order; blank lines are skipped, and a line that cannot be "
        "answered\n"
        "gets {\"error\": {\"code\", \"message\", \"line\"}} in its place and makes the exit status 3. A request, "
        "alone or\n"
        "on its line, may have 64 MiB. Images and videos may be paths, relative to the file of requests.\n"
        "--resume expects the same requests and options as the run that was stopped.\n",
    .example = "answer --model clef-27b ticket.json",
};

enum class Format { kAuto, kJson, kTable };

struct AnswerArguments {
  std::filesystem::path model;
  std::string requests;
  EngineOptions engine;
  ResponseFormat response;
  Format format = Format::kAuto;
  bool is_lines = false;
  std::string out;
  bool resume = false;
  bool force = false;
};

[[noreturn]] void refuse(const std::string& problem) {
  throw Error(ErrorCode::kArgument, "answer: " + problem);
}

Engine open_engine(const AnswerArguments& args) {
  EngineOptions options = args.engine;
  options.load_progress = loading_bar();
  return Engine(args.model, options);
}

void answer_lines(const AnswerArguments& args) {
  if (args.format == Format::kTable) refuse("--format table shows one request; lines are answered as JSON");
  AnswerLines lines({.requests = args.requests,
                     .out = args.out,
                     .resume = args.resume,
                     .force = args.force,
                     .format = args.response});
  lines.run(open_engine(args));
}

/// Opens --out for one response; nullopt: standard output.
std::optional<File> open_out(const AnswerArguments& args) {
  if (args.out.empty()) return std::nullopt;
  File out = File::output(args.out);
  if (out.size() > 0 && !args.force) {
    refuse(fmt::format("--out {} has text already; give --force to overwrite it", args.out));
  }
  return out;
}

std::string print_table(const Json& response, const Timings& timings) {
  const bool has_terminal = is_terminal(STDOUT_FILENO);
  const Json& tokens = *response.find("usage")->find("input_tokens");
  const double seconds = (timings.encode_ms + timings.vision_ms + timings.backbone_ms + timings.head_ms) / 1e3;
  return answer_table(response, {.width = terminal_width(STDOUT_FILENO), .has_colour = has_terminal}) +
         fmt::format("\n{} tokens in {:.2f} s\n", tokens.number_text(), seconds);
}

void answer_request(const AnswerArguments& args) {
  if (args.resume) refuse("--resume continues a .jsonl file; one request has nothing to continue");
  Request request = parse_request(read_request(args.requests));
  request.media_folder = folder_of_requests(args.requests);
  std::optional<File> out = open_out(args);

  const Engine engine = open_engine(args);
  Timings timings;
  const Answers answers = engine.answer(request, &timings);
  if (answers.dropped_state_tokens > 0) {
    report(fmt::format("{} tokens of the state were cut off", answers.dropped_state_tokens));
  }

  const Json response = to_json(answers, args.response);
  const bool is_table =
      args.format == Format::kTable || (args.format == Format::kAuto && !out && is_terminal(STDOUT_FILENO));
  const std::string text = is_table ? print_table(response, timings) : dump_json_pretty(response) + "\n";
  if (out) {
    out->truncate(0);
    out->write(text);
  } else {
    File::standard_output().write(text);
  }
}

/// --out must not be a file that the answers are made of.
void check_out(const AnswerArguments& args) {
  if (args.out.empty()) return;
  std::error_code ignored;
  if (std::filesystem::equivalent(args.out, args.requests, ignored)) {
    refuse(fmt::format("--out {} is the file of requests; name another", args.out));
  }
  std::error_code failed;
  for (std::filesystem::directory_iterator file(args.model, failed), end; !failed && file != end;
       file.increment(failed)) {
    if (std::filesystem::equivalent(args.out, file->path(), ignored)) {
      refuse(fmt::format("--out {} is a file of the release; name another", args.out));
    }
  }
}

void run(AnswerArguments& args) {
  args.is_lines = args.is_lines || std::filesystem::path(args.requests).extension() == ".jsonl";
  if (args.resume && args.out.empty()) refuse("--resume needs --out FILE, the file to continue");
  if (args.resume && args.force) refuse("--resume continues --out and --force overwrites it; give one of them");
  check_out(args);
  args.is_lines ? answer_lines(args) : answer_request(args);
}

}  // namespace

void add_answer(CLI::App& program) {
  CLI::App& command = add_command(program, kAnswerText);
  const auto args = std::make_shared<AnswerArguments>();
  command.add_option("--model", args->model, "release folder: config.json, *.safetensors, tokenizer.json")
      ->type_name("DIR")
      ->required();
  add_device_options(command, args->engine);
  add_length_options(command, args->engine);
  add_media_options(command, args->engine);
  add_pretokenizer_option(command, args->engine.pretokenizer);
  add_word_option<Format>(command, "--format", "NAME", args->format,
                          {{"json", Format::kJson}, {"table", Format::kTable}},
                          "json or table                 (default: table on a terminal, else json)");
  command.add_flag("--logits", args->response.logits,
                   "add x_logits: each question's logits, as `encode` orders its options");
  add_word_option<Confidence>(
      command, "--confidence", "KIND", args->response.confidence,
      {{"max", Confidence::kMax}, {"systemone", Confidence::kSystemOne}, {"entropy", Confidence::kEntropy}},
      "max, systemone or entropy     (default: max, the largest probability)");
  command.add_flag("--jsonl", args->is_lines, "REQUEST holds one request a line, whatever its name is");
  command.add_option("--out", args->out, "write there; a file that has text is left alone and refused")
      ->type_name("FILE");
  command.add_flag("--resume", args->resume, "continue what a stopped run has left in --out");
  command.add_flag("--force", args->force, "overwrite --out");
  command.add_option("REQUEST", args->requests, "a request as JSON, or a .jsonl file of them")->required();
  command.callback([args] { run(*args); });
}

}  // namespace treble::cli
