#pragma once

#include <treble/record.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "model/packed_batch.h"

namespace treble {

/// A pass is full when its records, each counted in whole units, are: the gated delta rule works in chunks of so many
/// tokens, and no chunk holds two records.
inline constexpr std::int64_t kPassUnit = 64;

constexpr std::int64_t round_up_to_unit(std::int64_t num_tokens) {
  return (num_tokens + kPassUnit - 1) / kPassUnit * kPassUnit;
}

/// Whether a record is more than a pass of at most max_tokens tokens takes: its questions and options count too where
/// they are more than its tokens, which no prompt is made of. Such a record is read in pieces (model/pieces.h).
bool needs_pieces(const EncodedRecord& record, std::int64_t max_tokens);

/// Cuts records, in order, into passes of at most max_tokens tokens. One that needs pieces is alone.
/// @param max_tokens  at least one unit
std::vector<std::span<const EncodedRecord>> split_into_passes(std::span<const EncodedRecord> records,
                                                              std::int64_t max_tokens);

/// @throws Error kTooLong: the records do not go together in one pass, which `purpose` needs
void require_one_pass(std::span<const EncodedRecord> records, std::int64_t max_tokens, std::string_view purpose);

/// EncodedRecords -> one batch, laid end to end. It borrows the levels of the records' media.
/// @param vocab_size  rows of the embedding table
/// @throws Error kRequest if a token id has no row; kTooLong if the batch has more tokens than a 32-bit index counts
PackedBatch pack_batch(std::span<const EncodedRecord> records, std::int64_t vocab_size);

/// The batch's logits, cut by record and question: [record][question][option].
std::vector<std::vector<std::vector<float>>> unpack_logits(std::span<const EncodedRecord> records,
                                                           const std::vector<float>& logits);

}  // namespace treble
