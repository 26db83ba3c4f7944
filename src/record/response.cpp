#include <treble/record.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

// Everything here is computed in double from unrounded probabilities and rounded last.

namespace treble {
namespace {

/// As Python's round(value, 4): the nearest multiple of 0.0001 to the exact binary value, half to even.
Json rounded(double value) {
  char digits[32];  // probabilities, confidences and scores lie in [0, 10]
  const auto end = std::to_chars(digits, digits + sizeof(digits), value, std::chars_format::fixed, 4).ptr;
  double nearest = 0;
  std::from_chars(digits, end, nearest);
  return Json::real(nearest);
}

/// Index of the most probable option; the first in the request's order of equals.
std::size_t mode_of(const std::vector<double>& probabilities) {
  return static_cast<std::size_t>(std::max_element(probabilities.begin(), probabilities.end()) - probabilities.begin());
}

double expected_level(const std::vector<double>& probabilities) {
  double sum = 0;
  for (std::size_t level = 0; level < probabilities.size(); ++level) {
    sum += static_cast<double>(level) * probabilities[level];
  }
  return sum;
}

/// 1 - H / ln n.
double entropy_confidence(const std::vector<double>& probabilities) {
  double entropy = 0;
  for (const double p : probabilities) entropy -= p > 0 ? p * std::log(p) : 0;
  return 1 - entropy / std::log(static_cast<double>(probabilities.size()));
}

/// How far the largest probability is on the way from 1 / n to 1.
double choice_confidence(const std::vector<double>& probabilities) {
  const auto n = static_cast<double>(probabilities.size());
  return (n * probabilities[mode_of(probabilities)] - 1) / (n - 1);
}

/// 1 - mean distance to the mode, over the mean distance to the middle of equal probabilities.
double score_confidence(const std::vector<double>& probabilities) {
  const auto n = static_cast<double>(probabilities.size());
  const auto mode = static_cast<double>(mode_of(probabilities));
  double distance = 0;
  double uniform_distance = 0;
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    const auto level = static_cast<double>(i);
    distance += probabilities[i] * std::abs(level - mode);
    uniform_distance += std::abs(level - (n - 1) / 2) / n;
  }
  return 1 - distance / uniform_distance;
}

double confidence_of(const Answer& answer, Confidence kind) {
  const std::vector<double>& probabilities = answer.probabilities;
  if (probabilities.size() == 1) return 1;
  double confidence = 0;
  switch (kind) {
    case Confidence::kMax:
      confidence = probabilities[mode_of(probabilities)];
      break;
    case Confidence::kEntropy:
      confidence = entropy_confidence(probabilities);
      break;
    case Confidence::kSystemOne:
      confidence =
          answer.type == QuestionType::kScore ? score_confidence(probabilities) : choice_confidence(probabilities);
      break;
  }
  return std::clamp(confidence, 0.0, 1.0);
}

Json to_json(const Answer& answer, Confidence confidence) {
  const std::vector<double>& p = answer.probabilities;
  if (answer.type == QuestionType::kNoul) return Json::Object{{"type", "noul"}, {"noul", rounded(p[0])}};

  Json::Object body{{"type", to_string(answer.type)}};
  Json::Object probabilities;
  Json::Object legend;
  for (std::size_t i = 0; i < p.size(); ++i) {
    probabilities.emplace_back(answer.options[i].id, rounded(p[i]));
    if (answer.type == QuestionType::kScore) legend.emplace_back(answer.options[i].id, answer.options[i].description);
  }
  if (answer.type == QuestionType::kChoice) {
    body.emplace_back("choice", answer.options[mode_of(p)].id);
  } else {
    body.emplace_back("score", rounded(expected_level(p)));
  }
  body.emplace_back("confidence", rounded(confidence_of(answer, confidence)));
  if (answer.type == QuestionType::kScore) body.emplace_back("legend", std::move(legend));
  body.emplace_back("probabilities", std::move(probabilities));
  return body;
}

}  // namespace

Json to_json(const Answers& answers, const ResponseFormat& format) {
  Json::Object by_id;
  for (const Answer& answer : answers.answers) by_id.emplace_back(answer.id, to_json(answer, format.confidence));

  Json::Object body{{"model", answers.model},
                    {"answers", std::move(by_id)},
                    {"usage", Json::Object{{"input_tokens", Json::integer(answers.input_tokens)},
                                           {"output_tokens", Json::integer(0)}}}};
  if (format.logits) {
    Json::Object logits;
    for (const Answer& answer : answers.answers) {
      Json::Array row;
      for (const float logit : answer.logits) row.push_back(Json::real(logit));
      logits.emplace_back(answer.id, std::move(row));
    }
    body.emplace_back("x_logits", std::move(logits));
  }
  return body;
}

}  // namespace treble
