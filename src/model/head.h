#pragma once

#include <vector>

#include "model/packed_batch.h"
#include "model/weights.h"
#include "ops/ops.h"
#include "tensor/workspace.h"

namespace treble {

/// The joint schema head: hidden states and spans -> one logit per option. Activations are fp32 from the first norm on.
/// All records of the batch go through each product together; attention keeps them apart.
/// @param hidden  [T, h] as run_backbone returns it
/// @return [O] logits in the batch's option order
std::vector<float> run_head(const Model& model, const PackedBatch& batch, const TensorView& hidden, Ops& ops,
                            Workspace& workspace);

}  // namespace treble
