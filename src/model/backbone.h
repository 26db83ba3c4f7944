#pragma once

#include "model/packed_batch.h"
#include "model/prefix.h"
#include "model/trace.h"
#include "model/weights.h"
#include "ops/ops.h"
#include "tensor/workspace.h"

namespace treble {

/// Token ids -> last hidden states, final norm included (docs/model.md).
/// @param media_features  [M, h] act: the vision tower's output for batch.media, in order; empty: there is none
/// @param trace  receives "embed" (the table's rows, without media) and, of the residual stream, "layer00.mixer"
///               (after the mixer) and "layer00.out" (after the layer)
/// @param prefix  the batch is of one record, whose tokens before it these are; they are added to it. nullptr: records
///                begin with the batch, and nothing is kept
/// @return [T, h] in the backend's activation dtype, taken from the workspace
TensorView run_backbone(const Model& model, const PackedBatch& batch, const TensorView& media_features, Ops& ops,
                        Workspace& workspace, const Trace& trace = {}, Prefix* prefix = nullptr);

}  // namespace treble
