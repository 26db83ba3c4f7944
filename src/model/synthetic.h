#pragma once

#include <string_view>

#include "model/config.h"
#include "model/weights.h"

namespace treble {

/// The configuration of a published size ("27b", "9b", "4b", "2b", "0.8b") or of LAYERSxHIDDEN, e.g. "8x1024": a stack
/// of that many layers, three Gated DeltaNet ones to one attention layer, and a vision tower in the proportions of the
/// 0.8b. Without `vision` it is a text model.
/// @throws Error kArgument listing what is allowed
ModelConfig synthetic_config(std::string_view size);

/// A model of random weights, made in memory: for timing and memory, its answers mean nothing.
/// The same configuration gives the same weights.
/// @param conversion  quantises the Linears as they are made
/// @param progress  called on the calling thread, with bytes made so far, and 0: how many it will be is not counted
Model synthetic_model(const ModelConfig& config, Ops& ops, WeightConversion conversion = WeightConversion::kNone,
                      const LoadProgress& progress = {});

}  // namespace treble
