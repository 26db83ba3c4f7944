#include "eval/groups.h"

#include <doctest/doctest.h>
#include <treble/error.h>

namespace treble::eval {
namespace {

using doctest::Approx;

std::vector<OptionGroups> parse(const char* text) {
  return groups_from_json(parse_json(text, "test", ErrorCode::kArgument));
}

/// The message of the error that the text causes; "" if it causes none.
std::string error_of(const char* text) {
  try {
    parse(text);
    return "";
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kArgument);
    return error.what();
  }
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

constexpr const char* kModeration = R"({"verdict": {"keep": ["ok", "joke"], "hide": ["spam"]}})";

TEST_CASE("groups: probabilities of the options of a group are summed") {
  const OptionGroups groups = parse(kModeration).front();
  const Question question{.id = "verdict",
                          .type = QuestionType::kChoice,
                          .instructions = {},
                          .options = {{"joke", {}}, {"spam", {}}, {"ok", {}}}};
  const std::vector<std::size_t> group_of_option = group_of_options(groups, question);
  CHECK(group_of_option == std::vector<std::size_t>{0, 1, 0});
  const std::vector<double> sums = group_probabilities(std::vector{0.25, 0.5, 0.125}, group_of_option, 2);
  CHECK(sums == std::vector{0.375, 0.5});
}

TEST_CASE("groups: an option in no group, in two groups or a lone group is refused by name") {
  const Question question{.id = "verdict", .type = QuestionType::kChoice, .instructions = {}, .options = {{"new", {}}}};
  CHECK_THROWS_WITH_AS(group_of_options(parse(kModeration).front(), question), doctest::Contains("\"new\""), Error);
  CHECK(contains(error_of(R"({"v": {"a": ["x"], "b": ["x"]}})"), "\"x\" twice"));
  CHECK(contains(error_of(R"({"v": {"a": ["x"]}})"), "two or more groups"));
  CHECK(contains(error_of(R"({"v": {"a": ["x"], "b": "y"}})"), "v.b is a string"));
  CHECK(contains(error_of(R"({"v": {"a": ["x"], "b": [1]}})"), "expected options as strings"));
  CHECK(contains(error_of("[]"), "an array"));
}

TEST_CASE("groups: drift, flips and binary Brier scores of two decisions") {
  const std::vector<GroupedDecision> decisions = {
      {.place = "r line 1", .p = {0.6, 0.4}, .q = {0.4, 0.6}, .label = 0},
      {.place = "r line 2", .p = {0.9, 0.1}, .q = {0.8, 0.2}, .label = std::nullopt}};
  const GroupReport report = compare_groups(parse(kModeration).front(), decisions);
  CHECK(report.agreement.count == 1);
  CHECK(report.agreement.total == 2);
  REQUIRE(report.groups.size() == 2);
  CHECK(report.groups[0].name == "keep");
  CHECK(report.groups[0].mean_difference == Approx(0.15));
  CHECK(report.groups[0].max_difference == Approx(0.2));
  CHECK(report.num_labelled == 1);
  CHECK(report.groups[0].brier_reference == Approx(0.16));
  CHECK(report.groups[0].brier_model == Approx(0.36));
  REQUIRE(report.flips.size() == 1);
  CHECK(report.flips[0].place == "r line 1");
  CHECK(report.flips[0].reference == 0);
  CHECK(report.flips[0].model == 1);
  CHECK(report.flips[0].q[1] == 0.6);
}

TEST_CASE("groups: a question or a group that is there twice is an error") {
  CHECK(contains(error_of(R"({"q": {"a": ["x"], "b": ["y"]}, "q": {"a": ["y"], "b": ["x"]}})"), "q is there twice"));
  CHECK(contains(error_of(R"({"q": {"a": ["x"], "a": ["y"]}})"), R"("q" has the group "a" twice)"));
}

}  // namespace
}  // namespace treble::eval
