#include "engine/pack.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>
#include <limits>

#include "media/media_item.h"

namespace treble {
namespace {

void add_span(std::vector<std::int32_t>& spans, const Span& span, std::int32_t offset) {
  spans.push_back(span.begin + offset);
  spans.push_back(span.end + offset);
}

/// Tokens that a record counts for in a pass.
std::int64_t count_of(const EncodedRecord& record) {
  std::int64_t fields = 0;
  for (const EncodedQuestion& question : record.questions) fields += 1 + std::ssize(question.option_spans);
  return std::max<std::int64_t>(std::ssize(record.input_ids), fields);
}

void add_tokens(PackedBatch& batch, const EncodedRecord& record, std::int64_t vocab_size) {
  for (const std::int32_t id : record.input_ids) {
    if (id < 0 || id >= vocab_size)
      throw Error(ErrorCode::kRequest, fmt::format("request: token {} has no row in the model's vocabulary of {}; "
                                                   "do tokenizer.json and config.json belong together?",
                                                   id, vocab_size));
    batch.input_ids.push_back(id);
  }
  batch.cu_seqlens.push_back(static_cast<std::int32_t>(batch.input_ids.size()));
}

void add_questions(PackedBatch& batch, const EncodedRecord& record, std::int32_t record_index, std::int32_t offset) {
  for (const EncodedQuestion& question : record.questions) {
    const auto question_index = static_cast<std::int32_t>(batch.question_types.size());
    add_span(batch.question_spans, question.question_span, offset);
    batch.question_types.push_back(static_cast<std::int32_t>(question.type));
    batch.question_record.push_back(record_index);
    for (const Span& span : question.option_spans) {
      add_span(batch.option_spans, span, offset);
      batch.option_question.push_back(question_index);
    }
    batch.cu_question_options.push_back(static_cast<std::int32_t>(batch.option_question.size()));
  }
  batch.cu_questions.push_back(static_cast<std::int32_t>(batch.question_types.size()));
  batch.cu_options.push_back(static_cast<std::int32_t>(batch.option_question.size()));
}

void add_media(PackedBatch& batch, const EncodedRecord& record, std::int32_t offset) {
  for (const std::shared_ptr<const MediaItem>& item : record.media)
    batch.media.push_back({.grid_t = item->grid_t,
                           .grid_h = item->grid_h,
                           .grid_w = item->grid_w,
                           .frames_per_patch = item->frames_per_patch(),
                           .levels = item->levels,
                           .mean = item->mean,
                           .deviation = item->deviation,
                           .digest = item->digest});
  for (const Span& span : record.media_spans)
    for (std::int32_t t = span.begin; t < span.end; ++t) batch.media_tokens.push_back(offset + t);
}

/// M-RoPE positions of one record, which begins at token `offset` of the batch. Text counts on alike on all axes. The
/// tokens of an image or a frame group share their time; rows and columns count from it, and the text behind goes on
/// past the longer side.
void add_positions(PackedBatch& batch, const EncodedRecord& record, std::size_t offset) {
  const std::size_t total_tokens = batch.input_ids.size();
  std::int32_t* const time = batch.positions.data() + offset;
  std::int32_t* const height = time + total_tokens;
  std::int32_t* const width = height + total_tokens;
  std::int32_t next = 0, t = 0;  // position and token
  const auto add_text = [&](std::int32_t end) {
    for (; t < end; ++t) time[t] = height[t] = width[t] = next++;
  };
  auto span = record.media_spans.begin();
  for (const std::shared_ptr<const MediaItem>& item : record.media) {
    const auto rows = static_cast<std::int32_t>(item->grid_h / 2),
               columns = static_cast<std::int32_t>(item->grid_w / 2);
    for (std::int64_t group = 0; group < item->grid_t; ++group, ++span) {
      if (span == record.media_spans.end() || span->end - span->begin != rows * columns)
        throw Error(ErrorCode::kInternal, fmt::format("engine: the span of frame group {} of an item of {} x {} tokens "
                                                      "does not fit it",
                                                      group, rows, columns));
      add_text(span->begin);
      for (; t < span->end; ++t) {
        time[t] = next;
        height[t] = next + (t - span->begin) / columns;
        width[t] = next + (t - span->begin) % columns;
      }
      next += std::max(rows, columns);
    }
  }
  add_text(static_cast<std::int32_t>(record.input_ids.size()));
}

}  // namespace

bool needs_pieces(const EncodedRecord& record, std::int64_t max_tokens) {
  return count_of(record) > max_tokens;
}

std::vector<std::span<const EncodedRecord>> split_into_passes(std::span<const EncodedRecord> records,
                                                              std::int64_t max_tokens) {
  const std::int64_t most = round_up_to_unit(std::min<std::int64_t>(max_tokens, std::int64_t{1} << 40));
  std::vector<std::span<const EncodedRecord>> passes;
  std::size_t begin = 0;
  std::int64_t used = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const std::int64_t count = count_of(records[i]);
    if (i > begin && used + round_up_to_unit(count) > most) {
      passes.push_back(records.subspan(begin, i - begin));
      begin = i;
      used = 0;
    }
    used += round_up_to_unit(count);
  }
  if (begin < records.size()) passes.push_back(records.subspan(begin));
  return passes;
}

void require_one_pass(std::span<const EncodedRecord> records, std::int64_t max_tokens, std::string_view purpose) {
  if (split_into_passes(records, max_tokens).size() <= 1) return;
  std::int64_t count = 0;
  for (const EncodedRecord& record : records) count += round_up_to_unit(count_of(record));
  throw Error(
      ErrorCode::kTooLong,
      fmt::format("engine: {} records take {} tokens of a pass (each in whole {}s, or as many as it has questions "
                  "and options), one pass has {}, and {} needs them in one; raise --pass-tokens",
                  records.size(), count, kPassUnit, max_tokens, purpose));
}

PackedBatch pack_batch(std::span<const EncodedRecord> records, std::int64_t vocab_size) {
  std::size_t total_tokens = 0;
  for (const EncodedRecord& record : records) total_tokens += record.input_ids.size();
  if (total_tokens > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()) / 3)
    throw Error(ErrorCode::kTooLong,
                fmt::format("engine: {} tokens in one batch; send fewer requests at once", total_tokens));

  PackedBatch batch;
  batch.input_ids.reserve(total_tokens);
  batch.cu_seqlens = batch.cu_questions = batch.cu_options = batch.cu_question_options = {0};
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto offset = static_cast<std::int32_t>(batch.input_ids.size());
    add_tokens(batch, records[i], vocab_size);
    add_media(batch, records[i], offset);
    add_questions(batch, records[i], static_cast<std::int32_t>(i), offset);
  }

  batch.positions.resize(3 * total_tokens);
  for (std::size_t i = 0; i < records.size(); ++i)
    add_positions(batch, records[i], static_cast<std::size_t>(batch.cu_seqlens[i]));
  return batch;
}

std::vector<std::vector<std::vector<float>>> unpack_logits(std::span<const EncodedRecord> records,
                                                           const std::vector<float>& logits) {
  std::vector<std::vector<std::vector<float>>> by_record;
  auto next = logits.begin();
  for (const EncodedRecord& record : records) {
    auto& by_question = by_record.emplace_back();
    for (const EncodedQuestion& question : record.questions) {
      const auto end = next + static_cast<std::ptrdiff_t>(question.option_spans.size());
      by_question.emplace_back(next, end);
      next = end;
    }
  }
  return by_record;
}

}  // namespace treble
