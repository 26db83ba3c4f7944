#include "cli/columns.h"

#include <doctest/doctest.h>

namespace treble::cli {
namespace {

TEST_CASE("columns: cells line up by what they show, not by their bytes") {
  Columns table({{.title = "name"}, {.title = "ms", .is_right = true}, {.title = "note"}});
  table.add({"é", "1.5", "a"});
  table.add({"日本語", "120.0", ""});
  CHECK(table.print() ==
        "name       ms  note\n"
        "é         1.5  a\n"
        "日本語  120.0\n");
}

TEST_CASE("columns: a cell that is too wide for its column is cut") {
  Columns table({{.title = "q", .max_width = 5}, {.title = "p"}});
  table.add({"abcdefg", "1"});
  CHECK(table.print() == "q      p\nabcd…  1\n");
}

TEST_CASE("columns: the last column takes what a line has left") {
  Columns table({{.title = "q"}, {.title = "rest"}});
  table.add({"abcd", "0123456789"});
  CHECK(table.print({.width = 12}) == "q     rest\nabcd  01234…\n");
  CHECK(table.print({.width = 4}) == "q\nabcd\n");
}

TEST_CASE("columns: colour marks titles and bold columns and leaves the columns aligned") {
  Columns table({{.title = "a", .is_right = true, .is_bold = true}, {.title = "b"}});
  table.add({"10", "x"});
  CHECK(table.print({.has_colour = true}) == " \x1b[2ma\x1b[0m  \x1b[2mb\x1b[0m\n\x1b[1m10\x1b[0m  x\n");
}

TEST_CASE("columns: text cannot move the cursor") {
  Columns table({{.title = "q"}});
  table.add({"a\x1b[2Jb\nc"});
  CHECK(table.print() == "q\na\xef\xbf\xbd[2Jb c\n");
}

}  // namespace
}  // namespace treble::cli
