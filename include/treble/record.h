#pragma once

#include <treble/json.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace treble {

/// The three kinds of question. The value is the type code that the joint head embeds.
enum class QuestionType : std::int32_t { kNoul = 0, kChoice = 1, kScore = 2 };

/// "noul", "choice" or "score".
std::string_view to_string(QuestionType type);

/// One allowed answer of a question.
struct Option {
  std::string id;
  Json description;  ///< null: the option has none
};

/// One question of a request.
struct Question {
  std::string id;
  QuestionType type = QuestionType::kNoul;
  Json instructions;            ///< null or "": the id stands in for them
  std::vector<Option> options;  ///< in the request's order; noul: "true", then "false"
};

/// A state and the questions about it.
struct Request {
  std::string model = "clef";       ///< echoed in the response
  Json state;                       ///< a string, an array or an object
  std::vector<Question> questions;  ///< in the request's order, ids distinct
  Json images;                      ///< as sent: an array, or null
  Json videos;                      ///< as sent: an array, or null
  Json media_kwargs;                ///< as sent: options of their preparation, an object, or null

  /// Lets strings in images and videos be paths, relative to this folder. No JSON sets it: whoever takes requests from
  /// others leaves it empty, so that they cannot have files read.
  std::optional<std::filesystem::path> media_folder;
};

/// Upper bounds that a request must keep before it is tokenised.
struct RequestLimits {
  std::size_t max_questions = 256;
  std::size_t max_options = 255;      ///< of one choice
  std::size_t max_score_levels = 10;  ///< of one score
};

/// Reads a System One request.
/// Unknown members are ignored. Absent, null or empty instructions mean the question's id. "files" is read as images.
/// parse_request allows a state of 64 levels; request_from_json leaves nesting to whoever parsed the JSON.
/// @throws Error kRequest, naming the member ("request: questions.urgency.criteria has 11 levels; ...")
Request parse_request(std::string_view json, const RequestLimits& limits = {});
Request request_from_json(const Json& json, const RequestLimits& limits = {});

/// Half-open range of token positions, counted in its own record.
struct Span {
  std::int32_t begin = 0;
  std::int32_t end = 0;
  bool operator==(const Span&) const = default;
};

/// Where one question stands in its record.
struct EncodedQuestion {
  std::string id;
  QuestionType type = QuestionType::kNoul;
  Span question_span;                       ///< the instructions' tokens
  std::vector<Span> option_spans;           ///< in the model's order
  std::vector<std::string> option_ids;      ///< in the model's order: a choice's options are sorted by code point
  std::vector<std::int32_t> request_order;  ///< request_order[i]: index into Question::options of model option i
};

struct MediaItem;  ///< an image or clip as the vision tower reads it: src/media/media_item.h
using MediaItems = std::vector<std::shared_ptr<const MediaItem>>;

/// One request as the model reads it.
struct EncodedRecord {
  std::vector<std::int32_t> input_ids;  ///< [T]
  std::vector<EncodedQuestion> questions;
  MediaItems media;               ///< images, then videos
  std::vector<Span> media_spans;  ///< tokens that stand for media: one span an image and one a video's frame group
  std::int64_t dropped_state_tokens = 0;  ///< cut from the end of the state; 0 unless truncation was asked for
};

/// {"input_ids": [...], "questions": [{"id", "type", "question_span", "option_spans", "option_ids"}]}, and with media
/// "media": [{"type": "image" or "video", "grid_thw": [t, h, w], "spans": [[begin, end], ...]}], a video's with
/// "timestamps", in seconds.
Json to_json(const EncodedRecord& record);

/// The answer to one question. Probabilities are double, unrounded.
struct Answer {
  std::string id;
  QuestionType type = QuestionType::kNoul;
  std::vector<Option> options;        ///< as in the request (ids and descriptions, request order)
  std::vector<double> probabilities;  ///< in the request's option order; sums to 1
  std::vector<float> logits;          ///< in the MODEL's option order (EncodedQuestion::option_ids)
};

/// Everything that is answered for one request.
struct Answers {
  std::string model;
  std::vector<Answer> answers;  ///< in question order
  std::int64_t input_tokens = 0;
  std::int64_t dropped_state_tokens = 0;
};

/// Softmax (fp32) of each question's logits, put into the request's order.
/// @param logits  one vector per question, in the model's option order
Answers decode_answers(const Request& request, const EncodedRecord& record,
                       const std::vector<std::vector<float>>& logits);

/// How one number is made of a distribution of n options; 1 where there is one option.
enum class Confidence {
  kMax,        ///< the largest probability, as the release's own code
  kSystemOne,  ///< choice: (n p_max - 1) / (n - 1); score: 1 - mean distance to the mode over its uniform value
  kEntropy,    ///< 1 - H / ln n
};

struct ResponseFormat {
  Confidence confidence = Confidence::kMax;
  bool logits = false;  ///< adds "x_logits": {question id: [logits in the model's option order]}
};

/// The response body; numbers rounded to 4 decimals last, half to even on the exact binary value.
Json to_json(const Answers& answers, const ResponseFormat& format = {});

}  // namespace treble
