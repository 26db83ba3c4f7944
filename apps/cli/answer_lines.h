#pragma once

#include <treble/engine.h>
#include <treble/record.h>

#include <cstdint>
#include <optional>
#include <string>

#include "cli/files.h"
#include "cli/line_reader.h"
#include "cli/progress_bar.h"

namespace treble::cli {

/// Answers a file of requests, one a line, into a file of responses, one a line and in the same order.
///
/// A line that cannot be answered gets {"error": {"code", "message", "line"}} in its place. Every response is handed to
/// the system whole before the next request is read, so a run may be killed at any moment: `resume` counts the whole
/// lines that are there, cuts off a piece of one, and goes on with the request that comes next.
class AnswerLines {
 public:
  struct Options {
    std::string requests;  ///< path, or "-" for standard input
    std::string out;       ///< path, or empty for standard output
    bool resume = false;   ///< continue what a stopped run has left in `out`
    bool force = false;    ///< overwrite `out`
    ResponseFormat format;
  };

  /// Opens both files and, to resume, finds the place to go on from; `out` is not changed yet.
  /// @throws Error kArgument: a file cannot be opened; `out` has text that is neither to be continued nor to be
  ///         overwritten; what is there does not belong to these requests
  explicit AnswerLines(Options options);

  /// Answers what is left.
  /// @throws Error kRequest at the end if any line, of this run or the one that is continued, was not answered; any
  ///         other error stops the run at once
  void run(const Engine& engine);

 private:
  void skip_answered();
  Json respond(const Engine& engine, const Line& line, ProgressBar& bar);

  Options options_;
  File requests_;
  std::optional<File> out_;
  LineReader reader_;
  std::int64_t num_lines_ = 0;     // of requests that have their response
  std::int64_t num_errors_ = 0;    // of them
  std::uint64_t begin_bytes_ = 0;  // of requests, where run() begins
  std::uint64_t out_bytes_ = 0;    // of whole responses in `out`
};

}  // namespace treble::cli
