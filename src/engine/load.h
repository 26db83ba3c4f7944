#pragma once

#include <treble/engine.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>

#include "model/weights.h"
#include "ops/ops.h"

namespace treble {

/// What one pass may take of a device.
struct PassLimits {
  std::int64_t max_tokens = std::numeric_limits<std::int64_t>::max();
  std::size_t activation_bytes = 0;  ///< taken before the first pass; 0: taken as passes need it
};

/// A model on its device, which has memory for passes up to the limits.
struct LoadedModel {
  std::unique_ptr<Ops> ops;
  Model model;
  PassLimits limits;
};

/// Plans the memory of a release folder's model, and loads it only if it fits.
/// @throws Error kCheckpoint, kArgument as load_model does; kDevice: it does not fit
LoadedModel load_release(std::unique_ptr<Ops> ops, const std::filesystem::path& folder, const EngineOptions& options);

/// The same for random weights: see synthetic_model.
LoadedModel load_synthetic(std::unique_ptr<Ops> ops, const ModelConfig& config, const EngineOptions& options);

}  // namespace treble
