#pragma once

#include <CLI/CLI.hpp>

namespace treble::cli {

// Each adds one command to the program: its options, its help, and what it does once they are parsed.
void add_answer(CLI::App& program);
void add_encode(CLI::App& program);
void add_inspect(CLI::App& program);
void add_bench(CLI::App& program);
void add_eval(CLI::App& program);
void add_quantize(CLI::App& program);

}  // namespace treble::cli
