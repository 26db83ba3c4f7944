#include <fmt/format.h>
#include <treble/error.h>
#include <treble/version.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "cli/command.h"
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/status.h"
#include "cli/terminal.h"

namespace treble::cli {
namespace {

void print(const std::string& text) {
  File::standard_output().write(text);
}

void add_help(CLI::App& program) {
  CLI::App& command = add_command(program, {.name = "help",
                                            .summary = "show what a command does and its options",
                                            .usage = "[COMMAND]",
                                            .notes = "",
                                            .example = "help answer"});
  const auto name = std::make_shared<std::string>();
  command.add_option("COMMAND", *name, "one of the commands that `treble help` lists");
  command.callback([&program, name] {
    const auto is_named = [&](const CLI::App* candidate) { return candidate->get_name() == *name; };
    const auto named = std::as_const(program).get_subcommands(is_named);
    if (!name->empty() && named.empty()) {
      throw Error(ErrorCode::kArgument, fmt::format("help: there is no command \"{}\"; see `treble help`", *name));
    }
    const CLI::App& about = named.empty() ? program : *named.front();
    print(about.get_formatter()->make_help(&about, "", CLI::AppFormatMode::Normal));
  });
}

/// What is wrong with the command line, and where to read how it should be.
std::string describe(const CLI::ParseError& error, const CLI::App& program, const std::string& first_word) {
  const auto commands = program.get_subcommands();
  if (!commands.empty()) {
    const std::string name = commands.front()->get_name();
    return fmt::format("{}: {}; see `treble help {}`", name, error.what(), name);
  }
  return fmt::format("there is no command \"{}\"; see `treble help`", first_word);
}

int run(int argc, char** argv) {
  CLI::App program("answers decision requests with a Clef model");
  program.footer("treble answer --model clef-27b ticket.json");
  set_program_help(program);
  program.set_version_flag("--version", fmt::format("treble {}", version()));
  program.require_subcommand(0, 1);
  add_answer(program);
  add_encode(program);
  add_inspect(program);
  add_bench(program);
  add_eval(program);
  add_quantize(program);
  add_help(program);

  if (argc < 2) {
    write_to_stderr(program.help());
    return exit_status(ErrorCode::kArgument);
  }
  try {
    program.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    print(program.help());
  } catch (const CLI::CallForVersion& version) {
    print(fmt::format("{}\n", version.what()));
  } catch (const CLI::ParseError& error) {
    report(describe(error, program, argv[1]));
    return exit_status(ErrorCode::kArgument);
  }
  return 0;
}

}  // namespace
}  // namespace treble::cli

int main(int argc, char** argv) {
  using namespace treble;
  using namespace treble::cli;
  // A reader that has seen enough ends us quietly, even if our parent ignores the signal.
  std::signal(SIGPIPE, SIG_DFL);
  hold_standard_streams();
  try {
    return run(argc, argv);
  } catch (const Error& error) {
    report(error.what());
    return exit_status(error.code());
  } catch (const std::bad_alloc&) {
    report("device: out of memory; send shorter records or use a smaller model");
    return exit_status(ErrorCode::kDevice);
  } catch (const std::exception& error) {
    report(fmt::format("internal: {}", error.what()));
    return exit_status(ErrorCode::kInternal);
  }
}
