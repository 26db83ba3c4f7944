#pragma once

#include <cstdint>
#include <vector>

#include "model/vision_item.h"

namespace treble {

/// Several records laid end to end without padding, and where their questions stand. All in host memory.
/// N records, T tokens, Q questions, O options in all; token positions count in the batch.
struct PackedBatch {
  std::vector<std::int32_t> input_ids;   // [T]
  std::vector<std::int32_t> positions;   // [3, T]: time, height, width; each record counts from 0
  std::vector<std::int32_t> cu_seqlens;  // [N + 1], first 0, last T

  std::vector<VisionItem> media;           // of all records, in prompt order
  std::vector<std::int32_t> media_tokens;  // [M] the token that each row of the items' features stands for

  std::vector<std::int32_t> question_spans;   // [Q, 2]
  std::vector<std::int32_t> question_types;   // [Q] QuestionType
  std::vector<std::int32_t> question_record;  // [Q]
  std::vector<std::int32_t> cu_questions;     // [N + 1]: questions of each record

  std::vector<std::int32_t> option_spans;         // [O, 2]
  std::vector<std::int32_t> option_question;      // [O]
  std::vector<std::int32_t> cu_options;           // [N + 1]: options of each record
  std::vector<std::int32_t> cu_question_options;  // [Q + 1]: options of each question

  std::int64_t total_tokens() const { return static_cast<std::int64_t>(input_ids.size()); }
  std::int64_t num_seqs() const { return static_cast<std::int64_t>(cu_seqlens.size()) - 1; }
  std::int64_t num_questions() const { return static_cast<std::int64_t>(question_types.size()); }
  std::int64_t num_options() const { return static_cast<std::int64_t>(option_question.size()); }
};

}  // namespace treble
