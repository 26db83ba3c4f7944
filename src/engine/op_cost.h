#pragma once

#include "ops/ops.h"

namespace treble {

/// The least that an operation has to move and compute, from its arguments: operands read once and results written
/// once; of arithmetic the matrix products alone, a multiplication and an addition counted as two.
struct OpCost {
  double bytes = 0;
  double flops = 0;
};

OpCost cost_of(const Embedding& args);
OpCost cost_of(const RmsNorm& args);
OpCost cost_of(const Linear& args);
OpCost cost_of(const LinearSwiglu& args);
OpCost cost_of(const RotaryTables& args);
OpCost cost_of(const AttentionInputs& args);
OpCost cost_of(const Attention& args);
OpCost cost_of(const DeltaRuleInputs& args);
OpCost cost_of(const GatedDeltaRule& args);
OpCost cost_of(const GatedRmsNorm& args);
OpCost cost_of(const LayerNorm& args);
OpCost cost_of(const SpanMean& args);
OpCost cost_of(const Gelu& args);
OpCost cost_of(const AddRows& args);
OpCost cost_of(const ScatterRows& args);
OpCost cost_of(const FillZero& args);
OpCost cost_of(const NormalizePatches& args);
OpCost cost_of(const AddInterpolatedRows& args);
OpCost cost_of(const AxialRotaryTables& args);
OpCost cost_of(const RotateHeads& args);
OpCost cost_of(const OptionFeatures& args);
OpCost cost_of(const OptionLogits& args);

}  // namespace treble
