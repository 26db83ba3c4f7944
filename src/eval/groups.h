#pragma once

#include <treble/json.h>

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "eval/metrics.h"
#include "eval/records.h"

namespace treble::eval {

/// Which options of a question count together, such as seven that mean "keep" and six that mean "hide".
struct OptionGroups {
  std::string question_id;
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;  ///< name, option ids; at least two groups
};

/// Reads {question id: {group: [option id, ...], ...}, ...}.
/// @throws Error kArgument naming the file: unreadable, no such object, fewer than two groups, an option in two groups
std::vector<OptionGroups> read_groups(const std::filesystem::path& path);
std::vector<OptionGroups> groups_from_json(const Json& json);

/// For each option of a question with that id, in the request's order, the index of its group.
/// @throws Error kArgument naming the option that is in no group
std::vector<std::size_t> group_of_options(const OptionGroups& groups, const Question& question);

/// Summed probability of each group: [group].
std::vector<double> group_probabilities(std::span<const double> p, std::span<const std::size_t> group_of_option,
                                        std::size_t num_groups);

/// A question whose two runs decide for different groups.
struct GroupFlip {
  std::string place;                     ///< of the record
  std::size_t reference = 0, model = 0;  ///< the groups decided for
  std::vector<double> p, q;              ///< [group] summed probabilities of the reference and of the model
};

/// One group's probability in all questions of one id.
struct GroupDrift {
  std::string name;
  double mean_difference = 0, max_difference = 0;  ///< of |q - p|
  double brier_reference = 0, brier_model = 0;     ///< mean (p - y)^2, y being 1 where the label is in the group
};

struct GroupReport {
  std::string question_id;
  std::vector<GroupDrift> groups;
  Proportion agreement;           ///< of the groups decided for
  std::int64_t num_labelled = 0;  ///< questions that the Brier scores are of
  std::vector<GroupFlip> flips;
};

/// One question as two runs answer it, by group.
struct GroupedDecision {
  std::string place;
  std::vector<double> p, q;          ///< [group]
  std::optional<std::size_t> label;  ///< group of the right option
};

GroupReport compare_groups(const OptionGroups& groups, std::span<const GroupedDecision> decisions);

}  // namespace treble::eval
