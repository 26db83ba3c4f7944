#pragma once

#include <string_view>

namespace treble::cli {

/// Whether a person reads what is written to the descriptor (STDOUT_FILENO, STDERR_FILENO).
bool is_terminal(int descriptor);

/// Columns of the terminal behind the descriptor, at least 40; 100 if there is none.
int terminal_width(int descriptor);

/// Messages have nowhere else to go: a stderr that is closed or full is passed over.
void write_to_stderr(std::string_view text);

/// Writes "treble: <message>" to stderr as one printable line.
void report(std::string_view message);

/// Opens what the caller has closed of stdin, stdout and stderr, so that no file of ours takes its number by chance.
void hold_standard_streams();

}  // namespace treble::cli
