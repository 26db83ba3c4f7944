#include "cli/progress_bar.h"

#include <doctest/doctest.h>

namespace treble::cli {
namespace {

TEST_CASE("progress: bar, share, rate and time left of a file") {
  CHECK(format_progress({.answered = 50, .elapsed_s = 10, .begin_bytes = 0, .done_bytes = 250, .total_bytes = 1000}) ==
        "[#####...............]  25%  50 answered  5.0/s  0:30 left");
}

TEST_CASE("progress: a continued run reckons with what it did itself") {
  CHECK(
      format_progress({.answered = 10, .elapsed_s = 10, .begin_bytes = 900, .done_bytes = 910, .total_bytes = 1000}) ==
      "[##################..]  91%  10 answered  1.0/s  1:30 left");
}

TEST_CASE("progress: of a pipe only the count and the rate are known") {
  CHECK(format_progress({.answered = 3, .elapsed_s = 2, .begin_bytes = 0, .done_bytes = 99, .total_bytes = 0}) ==
        "3 answered  1.5/s");
}

TEST_CASE("progress: nothing done yet, a file that grew, and hours left") {
  CHECK(format_progress({.answered = 0, .elapsed_s = 0, .begin_bytes = 0, .done_bytes = 0, .total_bytes = 10}) ==
        "[....................]   0%  0 answered  0.0/s");
  CHECK(format_progress({.answered = 1, .elapsed_s = 1, .begin_bytes = 0, .done_bytes = 20, .total_bytes = 10}) ==
        "[####################] 100%  1 answered  1.0/s  0:00 left");
  CHECK(format_progress({.answered = 1, .elapsed_s = 36, .begin_bytes = 0, .done_bytes = 1, .total_bytes = 202}) ==
        "[....................]   0%  1 answered  0.0/s  2:00:36 left");
}

}  // namespace
}  // namespace treble::cli
