#include "eval/groups.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <system_error>

#include "base/mapped_file.h"

namespace treble::eval {
namespace {

[[noreturn]] void refuse(const std::string& problem) {
  throw Error(ErrorCode::kArgument, "groups: " + problem);
}

OptionGroups read_question(const std::string& id, const Json& json) {
  if (!json.is_object() || json.as_object().size() < 2)
    refuse(fmt::format(R"({} needs two or more groups, like {{"keep": ["ok"], "hide": ["spam"]}})", dump_json(id)));
  OptionGroups groups{.question_id = id, .groups = {}};
  std::set<std::string> seen, names;
  for (const auto& [name, options] : json.as_object()) {
    if (!names.insert(name).second) refuse(fmt::format("{} has the group {} twice", dump_json(id), dump_json(name)));
    auto& group = groups.groups.emplace_back(name, std::vector<std::string>());
    if (!options.is_array())
      refuse(fmt::format("{}.{} is {}, expected an array of options", id, name, options.type_name()));
    for (const Json& option : options.as_array()) {
      if (!option.is_string())
        refuse(fmt::format(R"({}.{} has {}, expected options as strings, "true", "billing" or "0")", id, name,
                           option.type_name()));
      if (!seen.insert(option.as_string()).second)
        refuse(fmt::format("{} has the option {} twice; it counts in one group", id, dump_json(option)));
      group.second.push_back(option.as_string());
    }
  }
  return groups;
}

}  // namespace

std::vector<OptionGroups> groups_from_json(const Json& json) {
  if (!json.is_object()) refuse(fmt::format("the file holds {}, expected an object by question id", json.type_name()));
  std::vector<OptionGroups> all;
  std::set<std::string> ids;
  for (const auto& [id, groups] : json.as_object()) {
    if (!ids.insert(id).second) refuse(fmt::format("the question {} is there twice; give all its groups once", id));
    all.push_back(read_question(id, groups));
  }
  return all;
}

std::vector<OptionGroups> read_groups(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    refuse(fmt::format("{} {}; give a JSON file", path.string(), error ? error.message() : "is no file"));
  return groups_from_json(
      parse_json(read_text_file(path), fmt::format("groups: {}", path.string()), ErrorCode::kArgument));
}

std::vector<std::size_t> group_of_options(const OptionGroups& groups, const Question& question) {
  std::vector<std::size_t> group_of_option;
  for (const Option& option : question.options) {
    const auto group = std::ranges::find_if(groups.groups, [&](const auto& candidate) {
      return std::ranges::find(candidate.second, option.id) != candidate.second.end();
    });
    if (group == groups.groups.end())
      refuse(fmt::format("the option {} of question {} is in no group; put it into one", dump_json(option.id),
                         dump_json(question.id)));
    group_of_option.push_back(static_cast<std::size_t>(group - groups.groups.begin()));
  }
  return group_of_option;
}

std::vector<double> group_probabilities(std::span<const double> p, std::span<const std::size_t> group_of_option,
                                        std::size_t num_groups) {
  std::vector<double> sums(num_groups);
  for (std::size_t k = 0; k < p.size(); ++k) sums[group_of_option[k]] += p[k];
  return sums;
}

GroupReport compare_groups(const OptionGroups& groups, std::span<const GroupedDecision> decisions) {
  GroupReport report{.question_id = groups.question_id};
  for (const auto& group : groups.groups) report.groups.push_back({.name = group.first});

  for (const GroupedDecision& decision : decisions) {
    const std::size_t reference = argmax(decision.p), model = argmax(decision.q);
    if (reference != model)
      report.flips.push_back(
          {.place = decision.place, .reference = reference, .model = model, .p = decision.p, .q = decision.q});
    report.num_labelled += decision.label ? 1 : 0;
    for (std::size_t g = 0; g < report.groups.size(); ++g) {
      GroupDrift& drift = report.groups[g];
      const double difference = std::abs(decision.q[g] - decision.p[g]);
      drift.mean_difference += difference;
      drift.max_difference = std::max(drift.max_difference, difference);
      if (!decision.label) continue;
      const double y = *decision.label == g ? 1 : 0;
      drift.brier_reference += (decision.p[g] - y) * (decision.p[g] - y);
      drift.brier_model += (decision.q[g] - y) * (decision.q[g] - y);
    }
  }
  const auto count = static_cast<std::int64_t>(decisions.size());
  report.agreement = proportion(count - static_cast<std::int64_t>(report.flips.size()), count);
  for (GroupDrift& drift : report.groups) {
    drift.mean_difference /= static_cast<double>(std::max<std::int64_t>(1, count));
    drift.brier_reference /= static_cast<double>(std::max<std::int64_t>(1, report.num_labelled));
    drift.brier_model /= static_cast<double>(std::max<std::int64_t>(1, report.num_labelled));
  }
  return report;
}

}  // namespace treble::eval
