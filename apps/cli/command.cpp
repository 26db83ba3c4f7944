#include "cli/command.h"

#include <fmt/format.h>

#include <memory>
#include <utility>
#include <vector>

namespace treble::cli {
namespace {

constexpr const char* kExitStatus =
    "exit status: 0 answered, 1 internal, 2 arguments, 3 request, 4 checkpoint, 5 device.\n"
    "Answers go to stdout, everything else to stderr.\n";

/// Two columns; a description of several lines keeps to its own.
std::string print_rows(const std::vector<std::pair<std::string, std::string>>& rows) {
  std::size_t width = 0;
  for (const auto& row : rows) width = std::max(width, row.first.size());
  std::string out;
  for (const auto& [name, description] : rows) {
    std::string text = description;
    for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += width + 5) {
      text.insert(at + 1, width + 4, ' ');
    }
    out += fmt::format("  {:<{}}  {}\n", name, width, text);
  }
  return out;
}

class CommandHelp : public CLI::FormatterBase {
 public:
  explicit CommandHelp(CommandText text) : text_(std::move(text)) {}

  std::string make_help(const CLI::App* command, std::string, CLI::AppFormatMode) const override {
    std::vector<std::pair<std::string, std::string>> rows;
    for (const CLI::Option* option : command->get_options()) {
      if (option == command->get_help_ptr()) continue;
      const std::string value = option->nonpositional() ? option->get_type_name() : "";
      rows.emplace_back(option->get_name() + (value.empty() ? "" : " " + value), option->get_description());
    }
    return fmt::format("treble {0} - {1}\nusage: treble {0} {2}\n{3}{4}{5}example: treble {6}\n", text_.name,
                       text_.summary, text_.usage, print_rows(rows), text_.notes, kExitStatus, text_.example);
  }

 private:
  CommandText text_;
};

class ProgramHelp : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* program, std::string, CLI::AppFormatMode) const override {
    std::vector<std::pair<std::string, std::string>> rows;
    for (const CLI::App* command : program->get_subcommands({})) {
      rows.emplace_back(command->get_name(), command->get_description());
    }
    rows.emplace_back("--version", "print the version");
    return fmt::format("treble - {}\nusage: treble COMMAND ...\n{}{}example: {}\n", program->get_description(),
                       print_rows(rows), kExitStatus, program->get_footer());
  }
};

}  // namespace

CLI::App& add_command(CLI::App& program, const CommandText& text) {
  CLI::App& command = *program.add_subcommand(text.name, text.summary);
  command.formatter(std::make_shared<CommandHelp>(text));
  return command;
}

void set_program_help(CLI::App& program) {
  program.formatter(std::make_shared<ProgramHelp>());
}

}  // namespace treble::cli
