#pragma once

#include <functional>
#include <string>

#include "model/packed_batch.h"
#include "model/weights.h"
#include "ops/ops.h"
#include "tensor/workspace.h"

namespace treble {

/// Receives intermediate results by name while a pass runs: "embed", "layer00.mixer" and ".mlp" (what is added to the
/// residual stream) and ".out" (the stream after the layer). Views are valid during the call only.
using Trace = std::function<void(const std::string& name, const TensorView& value)>;

/// Token ids -> last hidden states, final norm included (docs/model.md).
/// @return [T, h] in the backend's activation dtype, taken from the workspace
TensorView run_backbone(const Model& model, const PackedBatch& batch, Ops& ops, Workspace& workspace,
                        const Trace& trace = {});

}  // namespace treble
