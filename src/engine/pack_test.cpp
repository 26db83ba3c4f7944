#include "engine/pack.h"

#include <doctest/doctest.h>
#include <treble/error.h>

#include <limits>
#include <numeric>
#include <string>

#include "media/media_item.h"

namespace treble {
namespace {

EncodedRecord record_of(std::vector<std::int32_t> ids, std::vector<EncodedQuestion> questions) {
  EncodedRecord record;
  record.input_ids = std::move(ids);
  record.questions = std::move(questions);
  return record;
}

EncodedQuestion question_of(QuestionType type, Span span, std::vector<Span> options) {
  EncodedQuestion question;
  question.type = type;
  question.question_span = span;
  question.option_spans = std::move(options);
  return question;
}

std::vector<EncodedRecord> two_records() {
  return {record_of({1, 2, 3, 4}, {question_of(QuestionType::kNoul, {0, 1}, {{1, 2}, {2, 3}})}),
          record_of({5, 6, 7}, {question_of(QuestionType::kScore, {0, 1}, {{1, 2}}),
                                question_of(QuestionType::kChoice, {1, 2}, {{0, 2}, {2, 3}, {0, 1}})})};
}

using Ints = std::vector<std::int32_t>;

TEST_CASE("pack_batch: records lie end to end and each counts its positions from 0") {
  const PackedBatch batch = pack_batch(two_records(), 100);
  CHECK(batch.input_ids == Ints{1, 2, 3, 4, 5, 6, 7});
  CHECK(batch.cu_seqlens == Ints{0, 4, 7});
  CHECK(batch.positions == Ints{0, 1, 2, 3, 0, 1, 2, 0, 1, 2, 3, 0, 1, 2, 0, 1, 2, 3, 0, 1, 2});
}

std::shared_ptr<const MediaItem> item_of(std::int64_t t, std::int64_t h, std::int64_t w) {
  auto item = std::make_shared<MediaItem>();
  item->kind = t == 1 ? MediaKind::kImage : MediaKind::kVideo;
  item->grid_t = t;
  item->grid_h = h;
  item->grid_w = w;
  item->digest = std::to_string(t * h * w);
  return item;
}

Ints axis_of(const PackedBatch& batch, std::ptrdiff_t axis) {
  const std::ptrdiff_t begin = axis * batch.total_tokens();
  return Ints(batch.positions.begin() + begin, batch.positions.begin() + begin + batch.total_tokens());
}

TEST_CASE("pack_batch: an image's tokens share their time, and text goes on past its longer side") {
  EncodedRecord record = record_of(Ints(13, 1), {});
  record.media = {item_of(1, 4, 6)};
  record.media_spans = {{4, 10}};
  const PackedBatch batch = pack_batch(std::span(&record, 1), 100);
  CHECK(axis_of(batch, 0) == Ints{0, 1, 2, 3, 4, 4, 4, 4, 4, 4, 7, 8, 9});
  CHECK(axis_of(batch, 1) == Ints{0, 1, 2, 3, 4, 4, 4, 5, 5, 5, 7, 8, 9});
  CHECK(axis_of(batch, 2) == Ints{0, 1, 2, 3, 4, 5, 6, 4, 5, 6, 7, 8, 9});
  CHECK(batch.media_tokens == Ints{4, 5, 6, 7, 8, 9});
  REQUIRE(batch.media.size() == 1);
  CHECK(batch.media[0].grid_h == 4);
  CHECK(batch.media[0].grid_w == 6);
  CHECK(batch.media[0].digest == "24");
}

TEST_CASE("pack_batch: each frame group of a clip is placed like an image, at its record's place in the batch") {
  EncodedRecord video = record_of(Ints(11, 1), {});
  video.media = {item_of(2, 4, 2)};
  video.media_spans = {{3, 5}, {7, 9}};
  const std::vector<EncodedRecord> records = {record_of({5, 6}, {}), video};
  const PackedBatch batch = pack_batch(records, 100);
  CHECK(axis_of(batch, 0) == Ints{0, 1, /**/ 0, 1, 2, 3, 3, 5, 6, 7, 7, 9, 10});
  CHECK(axis_of(batch, 1) == Ints{0, 1, /**/ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  CHECK(axis_of(batch, 2) == Ints{0, 1, /**/ 0, 1, 2, 3, 3, 5, 6, 7, 7, 9, 10});
  CHECK(batch.media_tokens == Ints{5, 6, 9, 10});
}

TEST_CASE("pack_batch: a span that does not fit its grid is an error of ours, not a wrong position") {
  EncodedRecord record = record_of(Ints(13, 1), {});
  record.media = {item_of(1, 4, 6)};
  record.media_spans = {{4, 9}};
  CHECK_THROWS_AS(pack_batch(std::span(&record, 1), 100), Error);
  record.media_spans.clear();
  CHECK_THROWS_AS(pack_batch(std::span(&record, 1), 100), Error);
}

TEST_CASE("pack_batch: spans are shifted to their record's place in the batch") {
  const PackedBatch batch = pack_batch(two_records(), 100);
  CHECK(batch.question_spans == Ints{0, 1, 4, 5, 5, 6});
  CHECK(batch.option_spans == Ints{1, 2, 2, 3, 5, 6, 4, 6, 6, 7, 4, 5});
}

TEST_CASE("pack_batch: questions and options know their record and their question") {
  const PackedBatch batch = pack_batch(two_records(), 100);
  CHECK(batch.question_types == Ints{0, 2, 1});
  CHECK(batch.question_record == Ints{0, 1, 1});
  CHECK(batch.option_question == Ints{0, 0, 1, 2, 2, 2});
  CHECK(batch.cu_questions == Ints{0, 1, 3});
  CHECK(batch.cu_options == Ints{0, 2, 6});
  CHECK(batch.cu_question_options == Ints{0, 2, 3, 6});
}

TEST_CASE("pack_batch: a token id without a row in the vocabulary is an error that names it") {
  CHECK_THROWS_WITH_AS(pack_batch(two_records(), 7), doctest::Contains("token 7 has no row"), Error);
  const std::vector<EncodedRecord> negative = {record_of({-1}, {})};
  CHECK_THROWS_AS(pack_batch(negative, 7), Error);
}

TEST_CASE("unpack_logits: every question of every record gets its own logits back") {
  const auto logits = unpack_logits(two_records(), {1, 2, 3, 4, 5, 6});
  REQUIRE(logits.size() == 2);
  CHECK(logits[0] == std::vector<std::vector<float>>{{1, 2}});
  CHECK(logits[1] == std::vector<std::vector<float>>{{3}, {4, 5, 6}});
}

/// One question of two options.
EncodedRecord record_of_length(std::int64_t tokens) {
  return record_of(Ints(static_cast<std::size_t>(tokens), 1),
                   {question_of(QuestionType::kNoul, {0, 1}, {{0, 1}, {0, 1}})});
}

TEST_CASE("split_into_passes: records stay in order, each counted in whole units") {
  std::vector<EncodedRecord> records;
  for (const std::int64_t tokens : {100, 64, 1, 256, 10, 10}) records.push_back(record_of_length(tokens));
  std::vector<std::size_t> sizes;
  for (const auto& pass : split_into_passes(records, 256)) {
    CHECK(pass.data() == records.data() + std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}));
    sizes.push_back(pass.size());
  }
  CHECK(sizes == std::vector<std::size_t>{3, 1, 2});  // 128 + 64 + 64; 256; 64 + 64
  CHECK(split_into_passes(records, std::numeric_limits<std::int64_t>::max()).size() == 1);
  CHECK(split_into_passes({}, 256).empty());
}

TEST_CASE("split_into_passes: a record longer than a pass is alone, and so is one of more fields than tokens") {
  const EncodedRecord of_many_fields =
      record_of(Ints(5, 1), {question_of(QuestionType::kChoice, {0, 1}, std::vector<Span>(100, Span{0, 1}))});
  const std::vector<EncodedRecord> records = {record_of_length(101), record_of_length(3), record_of_length(1000),
                                              of_many_fields, record_of_length(100)};
  const auto passes = split_into_passes(records, 100);
  REQUIRE(passes.size() == records.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    CHECK(passes[i].data() == &records[i]);
    CHECK(needs_pieces(records[i], 100) == (i != 1 && i != 4));
  }
}

TEST_CASE("require_one_pass: records that do not go together are refused with what they take") {
  const std::vector<EncodedRecord> records = {record_of_length(100), record_of_length(65)};
  require_one_pass(records, 256, "a test");
  require_one_pass({}, 64, "a test");
  try {
    require_one_pass(records, 191, "a test");
    FAIL("two records of 256 tokens in whole units were taken into a pass of 191");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kTooLong);
    for (const char* word : {"2 records", "take 256", "191", "a test", "--pass-tokens"})
      CHECK(std::string(error.what()).find(word) != std::string::npos);
  }
}

}  // namespace
}  // namespace treble
