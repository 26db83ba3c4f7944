#include "model/pieces.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>

#include "model/backbone.h"
#include "model/prefix.h"

namespace treble {
namespace {

std::int64_t divide_up(std::int64_t value, std::int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

/// Tokens of each piece but the last.
std::int64_t even_length(std::int64_t total_tokens, std::int64_t most) {
  const std::int64_t longest = most / kPieceUnit * kPieceUnit;
  const std::int64_t count = divide_up(total_tokens, longest);
  return divide_up(divide_up(total_tokens, count), kPieceUnit) * kPieceUnit;
}

/// What the backbone reads of tokens [begin, end) of a batch of one record.
PackedBatch cut(const PackedBatch& batch, std::int64_t begin, std::int64_t end) {
  PackedBatch piece;
  const auto copy = [&](const std::vector<std::int32_t>& from, std::int64_t first, std::vector<std::int32_t>& to) {
    to.insert(to.end(), from.begin() + first + begin, from.begin() + first + end);
  };
  copy(batch.input_ids, 0, piece.input_ids);
  for (std::int64_t axis = 0; axis < 3; ++axis) copy(batch.positions, axis * batch.total_tokens(), piece.positions);
  piece.cu_seqlens = {0, static_cast<std::int32_t>(end - begin)};
  return piece;
}

}  // namespace

HeadMemory read_in_pieces(const Model& model, const PackedBatch& batch, const TensorView& media_features,
                          std::int64_t piece_tokens, Ops& ops, Workspace& workspace, Workspace& carried,
                          const Trace& trace) {
  if (batch.num_seqs() != 1 || piece_tokens < kPieceUnit)
    throw Error(ErrorCode::kInternal, fmt::format("pieces: {} records in pieces of {} tokens, expected 1 in {} or more",
                                                  batch.num_seqs(), piece_tokens, kPieceUnit));
  const std::int64_t T = batch.total_tokens(), length = even_length(T, piece_tokens);
  const HeadMemory memory = take_head_memory(model, batch, ops, carried);
  const Workspace::Scope carried_scope(carried);
  Prefix prefix = take_prefix(model.config.text, T, ops, carried);

  const std::vector<std::int32_t>& media_tokens = batch.media_tokens;  // ascending
  auto first_row = media_tokens.begin();
  for (std::int64_t begin = 0; begin < T; begin += length) {
    const Workspace::Scope scope(workspace);
    const std::int64_t end = std::min(T, begin + length);
    PackedBatch piece = cut(batch, begin, end);
    const auto last_row = std::lower_bound(first_row, media_tokens.end(), static_cast<std::int32_t>(end));
    for (auto row = first_row; row != last_row; ++row)
      piece.media_tokens.push_back(*row - static_cast<std::int32_t>(begin));
    TensorView features;
    if (first_row != last_row)
      features =
          ops.upload(workspace, media_features.rows(first_row - media_tokens.begin(), last_row - media_tokens.begin()));
    first_row = last_row;
    const TensorView hidden = run_backbone(model, piece, features, ops, workspace, trace, &prefix);
    if (trace) trace("hidden", hidden);
    add_to_head_memory(model, hidden, begin, memory, ops, workspace);
  }
  return memory;
}

}  // namespace treble
