#pragma once

#include <cstdint>

#include "model/config.h"
#include "model/packed_batch.h"
#include "model/weights.h"
#include "ops/planner.h"

namespace treble {

/// What a model takes of the device behind a planner, with passes of up to so many tokens, records and questions in any
/// mixture that split_into_passes() gives. Nothing is loaded or computed.
/// @param shapes  the model's weights: ShapeSource, ReleaseShapes
/// @throws Error kDevice: the device does not run a weight's format
MemoryNeeds plan_memory(const ModelConfig& config, WeightSource& shapes, std::int64_t pass_tokens, Planner& planner);

/// The activations of those passes, bytes; the planner counts the scratch inside operations.
std::size_t plan_passes(const Model& model, std::int64_t pass_tokens, Planner& planner);

/// What a record that is read in pieces takes beside the activations of a pass over a piece, bytes.
struct PiecesNeeds {
  std::size_t carried = 0;  ///< from piece to piece, and in the tower and the head: the most at once
  std::size_t scratch = 0;  ///< inside operations, the most at once
};

/// @param batch  one record
PiecesNeeds plan_pieces(const Model& model, const PackedBatch& batch, std::int64_t piece_tokens, Planner& planner);

}  // namespace treble
