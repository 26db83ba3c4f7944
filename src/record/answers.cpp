#include <fmt/format.h>
#include <treble/error.h>
#include <treble/record.h>

#include <algorithm>
#include <cmath>

namespace treble {
namespace {

/// In fp32, as the release's own code; widened at the end.
std::vector<double> softmax(const std::vector<float>& logits) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  std::vector<float> weights;
  float sum = 0;
  for (const float logit : logits) {
    weights.push_back(std::exp(logit - largest));
    sum += weights.back();
  }
  std::vector<double> probabilities;
  for (const float weight : weights) probabilities.push_back(weight / sum);
  return probabilities;
}

Answer decode_answer(const Question& question, const EncodedQuestion& encoded, const std::vector<float>& logits) {
  const std::size_t num_options = question.options.size();
  if (num_options == 0 || logits.size() != num_options || encoded.request_order.size() != num_options) {
    throw Error(ErrorCode::kInternal,
                fmt::format("answers: question {} has {} options, its record {}, its logits are {}",
                            dump_json(question.id), num_options, encoded.request_order.size(), logits.size()));
  }
  if (!std::all_of(logits.begin(), logits.end(), [](float logit) { return std::isfinite(logit); })) {
    throw Error(ErrorCode::kCheckpoint,
                fmt::format("checkpoint: a logit of question {} is not finite, so the weights hold NaN or infinity; "
                            "download the release again",
                            dump_json(question.id)));
  }
  Answer answer{.id = question.id,
                .type = question.type,
                .options = question.options,
                .probabilities = std::vector<double>(num_options),
                .logits = logits};
  const std::vector<double> in_model_order = softmax(logits);
  for (std::size_t i = 0; i < num_options; ++i) {
    answer.probabilities.at(static_cast<std::size_t>(encoded.request_order[i])) = in_model_order[i];
  }
  return answer;
}

}  // namespace

Answers decode_answers(const Request& request, const EncodedRecord& record,
                       const std::vector<std::vector<float>>& logits) {
  const std::size_t num_questions = request.questions.size();
  if (record.questions.size() != num_questions || logits.size() != num_questions) {
    throw Error(ErrorCode::kInternal, fmt::format("answers: {} questions, {} in the record, {} lists of logits",
                                                  num_questions, record.questions.size(), logits.size()));
  }
  Answers answers{.model = request.model,
                  .answers = {},
                  .input_tokens = static_cast<std::int64_t>(record.input_ids.size()),
                  .dropped_state_tokens = record.dropped_state_tokens};
  for (std::size_t i = 0; i < num_questions; ++i) {
    answers.answers.push_back(decode_answer(request.questions[i], record.questions[i], logits[i]));
  }
  return answers;
}

}  // namespace treble
