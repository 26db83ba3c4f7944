#pragma once

#include <treble/record.h>

#include <cstdint>
#include <span>
#include <vector>

#include "model/packed_batch.h"

namespace treble {

/// EncodedRecords -> one batch, laid end to end. It borrows the levels of the records' media.
/// @param vocab_size  rows of the embedding table
/// @throws Error kRequest if a token id has no row; kTooLong if the batch has more tokens than a 32-bit index counts
PackedBatch pack_batch(std::span<const EncodedRecord> records, std::int64_t vocab_size);

/// The batch's logits, cut by record and question: [record][question][option].
std::vector<std::vector<std::vector<float>>> unpack_logits(std::span<const EncodedRecord> records,
                                                           const std::vector<float>& logits);

}  // namespace treble
