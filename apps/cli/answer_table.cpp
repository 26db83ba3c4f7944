#include "cli/answer_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace treble::cli {
namespace {

constexpr int kBarWidth = 10;
constexpr int kBarLineWidth = 72;  // narrower lines have no bar
constexpr std::size_t kMostOptions = 30;

/// A share of 1 as a bar of block characters, to an eighth of a cell.
std::string bar(double share) {
  constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = static_cast<int>(std::clamp(share, 0.0, 1.0) * kBarWidth * 8 + 0.5);
  std::string out;
  for (int cell = 0; cell < eighths / 8; ++cell) out += "█";
  return out + kEighths[eighths % 8];
}

/// A value without quotes if it is a string, as JSON otherwise.
std::string text_of(const Json& value) {
  return value.is_string() ? value.as_string() : dump_json(value);
}

/// How one answer is shown.
struct AnswerRow {
  std::string answer;
  double confidence = 0;
  std::vector<std::pair<std::string, double>> options;  ///< label, probability
};

AnswerRow noul_row(const Json& answer) {
  const double yes = answer.find("noul")->as_double();
  const bool is_true = yes >= 0.5;
  AnswerRow row{.answer = is_true ? "true" : "false", .confidence = is_true ? yes : 1 - yes, .options = {}};
  row.options = {{"true", yes}, {"false", 1 - yes}};
  if (!is_true) std::swap(row.options[0], row.options[1]);
  return row;
}

AnswerRow choice_row(const Json& answer) {
  AnswerRow row{
      .answer = text_of(*answer.find("choice")), .confidence = answer.find("confidence")->as_double(), .options = {}};
  for (const auto& [label, probability] : answer.find("probabilities")->as_object()) {
    row.options.emplace_back(label, probability.as_double());
  }
  std::stable_sort(row.options.begin(), row.options.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return row;
}

/// Levels keep their order: how probability spreads over them says more than which comes first.
AnswerRow score_row(const Json& answer) {
  AnswerRow row{.answer = fmt::format("{:.4f}", answer.find("score")->as_double()),
                .confidence = answer.find("confidence")->as_double(),
                .options = {}};
  const Json& legend = *answer.find("legend");
  for (const auto& [level, probability] : answer.find("probabilities")->as_object()) {
    const Json* meaning = legend.find(level);
    const bool has_meaning = meaning && !meaning->is_null();
    row.options.emplace_back(has_meaning ? fmt::format("{} {}", level, text_of(*meaning)) : level,
                             probability.as_double());
  }
  return row;
}

AnswerRow row_of(const Json& answer) {
  const std::string& type = answer.find("type")->as_string();
  if (type == "noul") return noul_row(answer);
  return type == "choice" ? choice_row(answer) : score_row(answer);
}

std::string list_options(const AnswerRow& row) {
  std::string out;
  const std::size_t count = std::min(row.options.size(), kMostOptions);
  for (std::size_t i = 0; i < count; ++i) {
    out += fmt::format("{}{} {:.4f}", i == 0 ? "" : ", ", row.options[i].first, row.options[i].second);
  }
  if (count < row.options.size()) out += fmt::format(", {} more", row.options.size() - count);
  return out;
}

}  // namespace

std::string answer_table(const Json& response, const TableStyle& style) {
  const bool has_bar = style.width >= kBarLineWidth;
  const int label_width = style.width / 4;
  std::vector<Column> columns = {{.title = "question", .max_width = label_width},
                                 {.title = "answer", .max_width = label_width, .is_bold = true},
                                 {.title = "confidence", .is_right = true}};
  if (has_bar) columns.push_back({.title = std::string(kBarWidth, ' ')});
  columns.push_back({.title = "probabilities"});

  Columns table(std::move(columns));
  for (const auto& [id, answer] : response.find("answers")->as_object()) {
    const AnswerRow row = row_of(answer);
    std::vector<std::string> cells = {id, row.answer, fmt::format("{:.4f}", row.confidence)};
    if (has_bar) cells.push_back(bar(row.confidence));
    cells.push_back(list_options(row));
    table.add(cells);
  }
  return table.print(style);
}

}  // namespace treble::cli
