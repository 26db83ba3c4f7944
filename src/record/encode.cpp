#include "record/encode.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>

#include "record/render.h"

namespace treble {
namespace {

constexpr std::string_view kPrefix =
    "<|im_start|>system\n"
    "Read the complete state and schema. Decide every field jointly. "
    "Each answer must be exactly one of that field's allowed options."
    "<|im_end|>\n<|im_start|>user\nSTATE:\n";
constexpr std::string_view kSuffix =
    "\n<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\nJOINT SCHEMA DECISIONS:";

/// A growing list of token ids. Pieces are tokenised apart, so that no merge crosses a border.
class Pieces {
 public:
  explicit Pieces(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  Span add(std::string_view text) {
    const std::size_t begin = ids.size();
    tokenizer_.encode(text, ids);
    return {static_cast<std::int32_t>(begin), static_cast<std::int32_t>(ids.size())};
  }

  std::vector<std::int32_t> ids;

 private:
  const Tokenizer& tokenizer_;
};

/// Indices of the options in the order in which the model reads them.
std::vector<std::int32_t> model_order(const Question& question) {
  std::vector<std::int32_t> order(question.options.size());
  std::iota(order.begin(), order.end(), 0);
  if (question.type == QuestionType::kChoice) {
    std::sort(order.begin(), order.end(),
              [&](std::int32_t a, std::int32_t b) { return question.options[a].id < question.options[b].id; });
  }
  return order;
}

std::string option_text(const Option& option) {
  Json::Object text{{"option_id", option.id}};
  if (!option.description.is_null()) text.emplace_back("description", option.description);
  return render(text);
}

std::string instruction_text(const Question& question) {
  const Json& instructions = question.instructions;
  const bool is_empty = instructions.is_null() || (instructions.is_string() && instructions.as_string().empty());
  return is_empty ? question.id : render(instructions);
}

/// The head averages over a span's tokens, so there must be one.
Span checked(Span span, std::string_view what, const Question& question) {
  if (span.begin == span.end) {
    throw Error(ErrorCode::kRequest, fmt::format("request: {} of question {} becomes no token; write at least one word",
                                                 what, dump_json(question.id)));
  }
  return span;
}

EncodedQuestion encode_question(const Question& question, std::size_t number, Pieces& schema) {
  EncodedQuestion encoded{.id = question.id,
                          .type = question.type,
                          .question_span = {},
                          .option_spans = {},
                          .option_ids = {},
                          .request_order = model_order(question)};
  schema.add(fmt::format("\nFIELD {}\nID: {}\nTYPE: {}\nINSTRUCTION: ", number, question.id, to_string(question.type)));
  encoded.question_span = checked(schema.add(instruction_text(question)), "the instructions", question);
  schema.add("\nALLOWED OPTIONS:\n");
  for (const std::int32_t index : encoded.request_order) {
    const Option& option = question.options[index];
    encoded.option_ids.push_back(option.id);
    schema.add(fmt::format("OPTION {}: ", encoded.option_ids.size()));
    encoded.option_spans.push_back(checked(schema.add(option_text(option)), "an option", question));
    schema.add("\n");
  }
  schema.add("END FIELD\n");
  return encoded;
}

void shift(Span& span, std::int64_t by) {
  span.begin += static_cast<std::int32_t>(by);
  span.end += static_cast<std::int32_t>(by);
}

void refuse_media(const Json& media, const char* name) {
  if (media.is_array() && !media.as_array().empty()) {
    throw Error(ErrorCode::kRequest,
                fmt::format("request: {} holds {} items, but this build reads no media; send text only", name,
                            media.as_array().size()));
  }
}

/// How many of the state's last tokens have to go.
std::int64_t tokens_to_drop(std::int64_t fixed_tokens, std::int64_t state_tokens, const EncodeOptions& options) {
  const std::int64_t total_tokens = fixed_tokens + state_tokens;
  if (total_tokens <= options.max_tokens) return 0;
  if (fixed_tokens > options.max_tokens) {
    throw Error(
        ErrorCode::kTooLong,
        fmt::format("request: prompt without \"state\" is {} tokens, limit is {}; ask fewer or shorter questions",
                    fixed_tokens, options.max_tokens));
  }
  if (!options.truncate_state) {
    throw Error(ErrorCode::kTooLong,
                fmt::format("request: prompt is {} tokens, limit is {}; shorten \"state\" by {} tokens", total_tokens,
                            options.max_tokens, total_tokens - options.max_tokens));
  }
  return total_tokens - options.max_tokens;
}

Json to_json(Span span) {
  return Json::Array{Json::integer(span.begin), Json::integer(span.end)};
}

}  // namespace

EncodedRecord encode_record(const Request& request, const Tokenizer& tokenizer, const EncodeOptions& options) {
  refuse_media(request.images, "images");
  refuse_media(request.videos, "videos");

  Pieces schema(tokenizer);
  EncodedRecord record;
  schema.add("\n\nSCHEMA FIELDS:\n");
  for (const Question& question : request.questions) {
    record.questions.push_back(encode_question(question, record.questions.size() + 1, schema));
  }

  Pieces pieces(tokenizer);
  pieces.add(kPrefix);
  const std::size_t prefix_tokens = pieces.ids.size();
  pieces.add(render(request.state));
  const std::size_t state_tokens = pieces.ids.size() - prefix_tokens;
  const std::vector<std::int32_t> suffix = tokenizer.encode(kSuffix);

  const std::size_t fixed_tokens = prefix_tokens + schema.ids.size() + suffix.size();
  record.dropped_state_tokens =
      tokens_to_drop(static_cast<std::int64_t>(fixed_tokens), static_cast<std::int64_t>(state_tokens), options);
  record.input_ids = std::move(pieces.ids);
  record.input_ids.resize(record.input_ids.size() - static_cast<std::size_t>(record.dropped_state_tokens));
  const auto before_schema = static_cast<std::int64_t>(record.input_ids.size());
  record.input_ids.insert(record.input_ids.end(), schema.ids.begin(), schema.ids.end());
  record.input_ids.insert(record.input_ids.end(), suffix.begin(), suffix.end());
  for (EncodedQuestion& question : record.questions) {
    shift(question.question_span, before_schema);
    for (Span& span : question.option_spans) shift(span, before_schema);
  }
  return record;
}

Json to_json(const EncodedRecord& record) {
  Json::Array input_ids;
  for (const std::int32_t id : record.input_ids) input_ids.push_back(Json::integer(id));
  Json::Array questions;
  for (const EncodedQuestion& question : record.questions) {
    Json::Array option_spans;
    for (const Span span : question.option_spans) option_spans.push_back(to_json(span));
    questions.push_back(
        Json::Object{{"id", question.id},
                     {"type", Json::integer(static_cast<int>(question.type))},
                     {"question_span", to_json(question.question_span)},
                     {"option_spans", std::move(option_spans)},
                     {"option_ids", Json::Array(question.option_ids.begin(), question.option_ids.end())}});
  }
  return Json::Object{{"input_ids", std::move(input_ids)}, {"questions", std::move(questions)}};
}

}  // namespace treble
