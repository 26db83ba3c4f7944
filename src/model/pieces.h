#pragma once

#include <cstdint>

#include "model/head.h"
#include "model/packed_batch.h"
#include "model/trace.h"
#include "model/weights.h"
#include "ops/ops.h"
#include "tensor/workspace.h"

namespace treble {

/// A multiple of these tokens ends a piece, but for a record's last: the gated delta rule works in chunks of so many,
/// and its chunks are then those of the whole record.
inline constexpr std::int64_t kPieceUnit = 64;

/// Reads a record in passes over pieces of it, as long as each other nearly, that carry keys and values, recurrent and
/// convolution states. What the head gets is what one pass would give it, to the digit where the backend's operations
/// give a row the same digits among fewer rows.
/// @param batch  one record
/// @param media_features  [M, h] act in host memory: the vision tower's output for batch.media, in order; or empty
/// @param piece_tokens  the longest piece; at least kPieceUnit
/// @param workspace  for what a pass over a piece takes
/// @param carried  for what stays from piece to piece; the result is taken from it
/// @param trace  as run_backbone's, and "hidden": its result; of each piece after the other
HeadMemory read_in_pieces(const Model& model, const PackedBatch& batch, const TensorView& media_features,
                          std::int64_t piece_tokens, Ops& ops, Workspace& workspace, Workspace& carried,
                          const Trace& trace = {});

}  // namespace treble
