#pragma once

#include <span>

#include "model/trace.h"
#include "model/vision_item.h"
#include "model/weights.h"
#include "ops/ops.h"
#include "tensor/workspace.h"

namespace treble {

/// Pixel patches -> the rows that replace the embeddings of media tokens (docs/model.md, "Vision tower"). Items lie end
/// to end and do not see each other; nor do the temporal patches of one.
/// @param trace  receives "vision.patch_embed" (without positions), "vision.block0", ... and "vision.merger"
/// @return [sum of num_features(), h] in the backend's activation dtype, taken from the workspace
/// @throws Error kInternal if the model has no tower, or an item's grid does not fit its levels
TensorView run_vision(const Model& model, std::span<const VisionItem> items, Ops& ops, Workspace& workspace,
                      const Trace& trace = {});

}  // namespace treble
