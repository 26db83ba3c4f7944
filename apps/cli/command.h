#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace treble::cli {

/// What the help of a command says beside its options.
struct CommandText {
  std::string name;
  std::string summary;  ///< "answer the questions of a JSON request"
  std::string usage;    ///< what follows "usage: treble answer "
  std::string notes;    ///< whole lines between the options and the exit status, or empty
  std::string example;  ///< a command line without "treble "
};

/// Adds a command that prints its help in our layout.
CLI::App& add_command(CLI::App& program, const CommandText& text);

/// Gives the program itself our layout: its commands, each with its summary.
void set_program_help(CLI::App& program);

}  // namespace treble::cli
