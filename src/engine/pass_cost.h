#pragma once

#include <treble/record.h>

#include <span>

#include "engine/op_cost.h"
#include "model/weights.h"

namespace treble {

/// What one pass of these records has to move and compute at least, with plain bf16 weights and activations: the sum
/// over its operations. Nothing is computed.
OpCost cost_of_pass(const Model& model, std::span<const EncodedRecord> records);

}  // namespace treble
