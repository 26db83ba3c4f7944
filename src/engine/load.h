#pragma once

#include <treble/engine.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>

#include "engine/choose_passes.h"
#include "model/weights.h"
#include "ops/planner.h"

namespace treble {

/// What one pass may take of a device.
struct PassLimits {
  std::int64_t max_tokens = std::numeric_limits<std::int64_t>::max();
  std::size_t activation_bytes = 0;  ///< taken before the first pass; 0: taken as passes need it
  std::int64_t longest_tokens = 0;   ///< the longest text for which there is memory, in pieces; 0: taken as needed
};

/// A vision tower that is not loaded with its model.
struct TowerOnDemand {
  bool is_off = false;                     ///< it was asked not to be
  std::function<void(Ops&, Model&)> load;  ///< adds it to the model; empty: there is none, or it is off
  std::size_t weight_bytes = 0;            ///< of the device, when it is loaded
  MemoryNeeds needs;                       ///< of the whole model and its passes then
};

/// A model on its device, which has memory for passes up to the limits.
struct LoadedModel {
  std::unique_ptr<Ops> ops;
  Model model;
  PassLimits limits;
  TowerOnDemand tower;
};

/// How long passes of a release folder's model are in so much room, and what they take.
/// @throws Error kCheckpoint; kArgument: pass_tokens; kDevice: the device does not run a weight's format
PassChoice plan_release(const std::filesystem::path& folder, const Planner& planner, std::size_t room,
                        const EngineOptions& options);

/// Plans the memory of a release folder's model, and loads it only if it fits.
/// @throws Error kCheckpoint, kArgument as load_model does; kDevice: it does not fit
LoadedModel load_release(std::unique_ptr<Ops> ops, const std::filesystem::path& folder, const EngineOptions& options);

/// The same for random weights: see synthetic_model.
LoadedModel load_synthetic(std::unique_ptr<Ops> ops, const ModelConfig& config, const EngineOptions& options);

}  // namespace treble
