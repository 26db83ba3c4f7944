#include "record/encode.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <string_view>

#include "media/media_item.h"
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

  const Tokenizer& tokenizer() const { return tokenizer_; }

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

std::size_t count_items(const Json& media) {
  return media.is_array() ? media.as_array().size() : 0;
}

/// The tokens between which a picture stands, and those that stand for it.
struct MediaTokens {
  std::int32_t vision_start, vision_end, image_pad, video_pad;

  explicit MediaTokens(const Tokenizer& tokenizer)
      : vision_start(find(tokenizer, "<|vision_start|>")),
        vision_end(find(tokenizer, "<|vision_end|>")),
        image_pad(find(tokenizer, "<|image_pad|>")),
        video_pad(find(tokenizer, "<|video_pad|>")) {}

 private:
  static std::int32_t find(const Tokenizer& tokenizer, const char* token) {
    const std::vector<std::int32_t> ids = tokenizer.encode(token);
    if (ids.size() != 1)
      throw Error(
          ErrorCode::kRequest,
          fmt::format("request: the model's tokenizer has no token {}, so it reads no media; send text only", token));
    return ids.front();
  }
};

/// Images as blocks of pad tokens; videos as their frame groups, each behind its timestamp; a line feed at the end.
/// This is the form of transformers 5.12 and later, where a video keeps its own start and end around the groups'.
void add_media(const MediaItems& media, Pieces& pieces, std::vector<Span>& spans) {
  const MediaTokens tokens(pieces.tokenizer());
  const auto add_block = [&](std::int32_t pad, std::int64_t count) {
    pieces.ids.push_back(tokens.vision_start);
    const auto begin = static_cast<std::int32_t>(pieces.ids.size());
    pieces.ids.insert(pieces.ids.end(), static_cast<std::size_t>(count), pad);
    spans.push_back({begin, static_cast<std::int32_t>(pieces.ids.size())});
    pieces.ids.push_back(tokens.vision_end);
  };
  for (const std::shared_ptr<const MediaItem>& item : media) {
    if (item->kind == MediaKind::kImage) {
      add_block(tokens.image_pad, item->tokens_per_group());
      continue;
    }
    pieces.ids.push_back(tokens.vision_start);
    for (const double seconds : item->timestamps) {
      pieces.add(fmt::format("<{:.1f} seconds>", seconds));
      add_block(tokens.video_pad, item->tokens_per_group());
    }
    pieces.ids.push_back(tokens.vision_end);
  }
  pieces.add("\n");
}

/// How many of the state's last tokens have to go.
std::int64_t tokens_to_drop(std::int64_t fixed_tokens, std::int64_t media_tokens, std::int64_t state_tokens,
                            const EncodeOptions& options) {
  const std::int64_t total_tokens = fixed_tokens + state_tokens;
  if (total_tokens <= options.max_tokens) return 0;
  if (fixed_tokens > options.max_tokens) {
    throw Error(
        ErrorCode::kTooLong,
        fmt::format(
            "request: prompt without \"state\" is {} tokens, limit is {}; ask fewer or shorter questions{}",
            fixed_tokens, options.max_tokens,
            media_tokens == 0 ? "" : fmt::format(", or send fewer or smaller media, which take {}", media_tokens)));
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

Json to_json(const MediaItem& item, std::span<const Span> item_spans) {
  Json::Array spans, timestamps;
  for (const Span span : item_spans) spans.push_back(to_json(span));
  for (const double seconds : item.timestamps) timestamps.push_back(Json::real(seconds));
  const bool is_image = item.kind == MediaKind::kImage;
  Json::Object object{
      {"type", is_image ? "image" : "video"},
      {"grid_thw", Json::Array{Json::integer(item.grid_t), Json::integer(item.grid_h), Json::integer(item.grid_w)}},
      {"spans", std::move(spans)}};
  if (!is_image) object.emplace_back("timestamps", std::move(timestamps));
  return object;
}

}  // namespace

EncodedRecord encode_record(const Request& request, const Tokenizer& tokenizer, const EncodeOptions& options,
                            MediaItems media) {
  const std::size_t num_items = count_items(request.images) + count_items(request.videos);
  if (media.size() != num_items)
    throw Error(ErrorCode::kRequest, fmt::format("request: has {} images and videos, {} of them were read; send text "
                                                 "only where media are not read",
                                                 num_items, media.size()));

  Pieces schema(tokenizer);
  EncodedRecord record;
  schema.add("\n\nSCHEMA FIELDS:\n");
  for (const Question& question : request.questions) {
    record.questions.push_back(encode_question(question, record.questions.size() + 1, schema));
  }

  Pieces pieces(tokenizer);
  pieces.add(kPrefix);
  if (!media.empty()) add_media(media, pieces, record.media_spans);
  const std::size_t prefix_tokens = pieces.ids.size();  // and those of media
  pieces.add(render(request.state));
  const std::size_t state_tokens = pieces.ids.size() - prefix_tokens;
  const std::vector<std::int32_t> suffix = tokenizer.encode(kSuffix);

  const std::size_t fixed_tokens = prefix_tokens + schema.ids.size() + suffix.size();
  std::int64_t media_tokens = 0;
  for (const Span& span : record.media_spans) media_tokens += span.end - span.begin;
  record.dropped_state_tokens = tokens_to_drop(static_cast<std::int64_t>(fixed_tokens), media_tokens,
                                               static_cast<std::int64_t>(state_tokens), options);
  record.media = std::move(media);
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
  Json::Object object{{"input_ids", std::move(input_ids)}, {"questions", std::move(questions)}};
  if (record.media.empty()) return object;
  Json::Array media;
  std::span<const Span> spans(record.media_spans);
  for (const std::shared_ptr<const MediaItem>& item : record.media) {
    const auto num_groups = static_cast<std::size_t>(item->grid_t);
    media.push_back(to_json(*item, spans.first(num_groups)));
    spans = spans.subspan(num_groups);
  }
  object.emplace_back("media", std::move(media));
  return object;
}

}  // namespace treble
