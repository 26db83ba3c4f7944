// How fast the tokenizer is.
//
//   treble_tokenizer_bench FOLDER FILE...      MB/s of each file on one core: median and spread of several runs
//   treble_tokenizer_bench --scaling FOLDER    time per MB of hostile texts at growing sizes: linear means it stays
//   level treble_tokenizer_bench --ids FOLDER        reads a JSON string a line, writes the list of its ids a line
//
// --pattern file|marks|plain before FOLDER picks the split pattern; otherwise the folder's own files do.

#include <treble/error.h>
#include <treble/json.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "text/tokenizer.h"

namespace treble {
namespace {

/// Processor time, not wall time: other programs of a busy machine do not count.
double seconds_to(const auto& run) {
  const std::clock_t begin = std::clock();
  run();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

/// Median, least and most seconds of the runs.
struct Timing {
  double median, least, most;
};

Timing time_encode(const Tokenizer& tokenizer, std::string_view text, int num_runs) {
  std::vector<double> seconds;
  std::vector<std::int32_t> ids;
  ids.reserve(text.size());
  for (int run = 0; run < num_runs; ++run) {
    ids.clear();
    seconds.push_back(seconds_to([&] { tokenizer.encode(text, ids); }));
  }
  std::sort(seconds.begin(), seconds.end());
  return {seconds[seconds.size() / 2], seconds.front(), seconds.back()};
}

void measure_files(const Tokenizer& tokenizer, const std::vector<std::string>& files) {
  constexpr int kNumRuns = 15;
  for (const std::string& file : files) {
    const std::string text = read_text_file(file);
    const auto num_ids = tokenizer.encode(text).size();  // also warms up
    const Timing timing = time_encode(tokenizer, text, kNumRuns);
    const double mb = static_cast<double>(text.size()) / 1e6;
    std::printf("%-40s %8.3f MB %9zu tokens  %7.2f MB/s (%.2f to %.2f, %d runs)\n", file.c_str(), mb, num_ids,
                mb / timing.median, mb / timing.most, mb / timing.least, kNumRuns);
  }
}

std::string repeat(std::string_view unit, std::size_t num_bytes) {
  std::string text;
  while (text.size() + unit.size() <= num_bytes) text += unit;
  return text;
}

void measure_scaling(const Tokenizer& tokenizer) {
  const std::pair<const char*, std::string_view> units[] = {
      {"one letter", "a"},
      {"blanks", " "},
      {"newlines", "\n"},
      {"blanks and newlines", "  \n \t\r\n"},
      {"no-break spaces", "\u00A0"},
      {"apostrophes", "'"},
      {"apostrophes and letters", "'l'r'v"},
      {"symbols", "=-"},
      {"acute accents", "\u0301"},
      {"marks of alternating class", "\u0301\u0323\u093C"},
      {"decomposed letters", "e\u0323\u0301"},
      {"Hangul jamo", "\u1112\u1161\u11AB"},
      {"fragments of added tokens", "<|im_"},
      {"unfinished added tokens", "<tts_text_bos_singl"},
      {"added tokens", "<|im_start|>"},
      {"Chinese", "\u4F60\u597D\u4E16\u754C"},
      {"emoji with U+FE0F", "\u2B50\uFE0F"},
      {"random letters", "qzjxkvwqpmzbtgcd"},
  };
  std::printf("microseconds per kB at      20 kB   200 kB  1000 kB  4000 kB\n");
  for (const auto& [name, unit] : units) {
    std::printf("%-26s", name);
    for (const std::size_t num_bytes : {20'000u, 200'000u, 1'000'000u, 4'000'000u}) {
      const std::string text = repeat(unit, num_bytes);
      const double seconds = time_encode(tokenizer, text, 3).median;
      std::printf(" %8.1f", seconds * 1e9 / static_cast<double>(text.size()));
    }
    std::printf("\n");
  }
}

void print_ids(const Tokenizer& tokenizer) {
  std::string line;
  while (std::getline(std::cin, line)) {
    const char* separator = "[";
    const std::vector<std::int32_t> ids = tokenizer.encode(parse_json(line, "input", ErrorCode::kRequest).as_string());
    for (const std::int32_t id : ids) {
      std::cout << separator << id;
      separator = ",";
    }
    std::cout << (ids.empty() ? "[]\n" : "]\n");
  }
}

PretokenizerChoice parse_pattern(std::string_view name) {
  if (name == "file") return PretokenizerChoice::kFile;
  if (name == "marks") return PretokenizerChoice::kMarks;
  if (name == "plain") return PretokenizerChoice::kPlain;
  throw Error(ErrorCode::kArgument, "bench: --pattern takes file, marks or plain");
}

void run(std::vector<std::string> arguments) {
  enum class Mode { kFiles, kScaling, kIds } mode = Mode::kFiles;
  PretokenizerChoice pattern = PretokenizerChoice::kAuto;
  auto next = arguments.begin();
  for (; next != arguments.end() && next->starts_with("--"); ++next) {
    if (*next == "--scaling") {
      mode = Mode::kScaling;
    } else if (*next == "--ids") {
      mode = Mode::kIds;
    } else if (*next == "--pattern" && next + 1 != arguments.end()) {
      pattern = parse_pattern(*++next);
    } else {
      throw Error(ErrorCode::kArgument, "bench: " + *next + " is no option; see the top of tokenizer_bench.cpp");
    }
  }
  if (next == arguments.end()) throw Error(ErrorCode::kArgument, "bench: no folder given");
  const std::string folder = *next++;

  std::unique_ptr<Tokenizer> tokenizer;
  const double load_seconds = seconds_to([&] { tokenizer = std::make_unique<Tokenizer>(folder, pattern); });
  if (mode == Mode::kIds) return print_ids(*tokenizer);
  std::printf("loaded %s in %.0f ms\n", folder.c_str(), load_seconds * 1e3);
  if (mode == Mode::kScaling) return measure_scaling(*tokenizer);
  measure_files(*tokenizer, {next, arguments.end()});
}

}  // namespace
}  // namespace treble

int main(int argc, char** argv) {
  try {
    treble::run({argv + 1, argv + argc});
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
