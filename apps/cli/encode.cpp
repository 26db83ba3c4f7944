#include <fmt/format.h>
#include <treble/engine.h>
#include <treble/record.h>

#include <filesystem>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/options.h"
#include "cli/terminal.h"

namespace treble::cli {
namespace {

const CommandText kEncodeText = {
    .name = "encode",
    .summary = "print the tokens and spans of a request, as the model reads it",
    .usage = "--model DIR [options] REQUEST.json        (\"-\" reads standard input)",
    .notes =
        "Prints {\"input_ids\", \"questions\": [{\"id\", \"type\", \"question_span\", \"option_spans\", "
        "\"option_ids\"}]}; types are\n"
        "0 noul, 1 choice, 2 score. With images or videos also \"media\": [{\"type\", \"grid_thw\", \"spans\", "
        "\"timestamps\"}].\nOf DIR only tokenizer.json, tokenizer_config.json, config.json and the processor's are "
        "read.\n",
    .example = "encode --model clef-27b ticket.json",
};

struct EncodeArguments {
  std::filesystem::path model;
  std::string request;
  EngineOptions options;
};

void run(const EncodeArguments& args) {
  Request request = parse_request(read_request(args.request));
  request.media_folder = folder_of_requests(args.request);
  const EncodedRecord record = encode_request(args.model, request, args.options);
  if (record.dropped_state_tokens > 0) {
    report(fmt::format("{} tokens of the state were cut off", record.dropped_state_tokens));
  }
  File::standard_output().write(dump_json(to_json(record)) + "\n");
}

}  // namespace

void add_encode(CLI::App& program) {
  CLI::App& command = add_command(program, kEncodeText);
  const auto args = std::make_shared<EncodeArguments>();
  command.add_option("--model", args->model, "release folder")->type_name("DIR")->required();
  add_length_options(command, args->options);
  add_media_options(command, args->options);
  add_pretokenizer_option(command, args->options.pretokenizer);
  command.add_option("REQUEST", args->request, "a request as JSON")->required();
  command.callback([args] { run(*args); });
}

}  // namespace treble::cli
