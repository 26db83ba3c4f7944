#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "model/config.h"
#include "model/weights.h"
#include "ops/planner.h"

namespace treble {

/// A model whose memory is planned, for passes of any length. Nothing is loaded or computed.
class PlannedModel {
 public:
  /// @param shapes  the model's weights: ShapeSource, ReleaseShapes
  PlannedModel(const ModelConfig& config, WeightSource& shapes, std::unique_ptr<Planner> planner);

  /// What it takes with passes of up to so many tokens.
  MemoryNeeds passes(std::int64_t pass_tokens) const;
  /// What a text of so many tokens takes more in passes of those: 8 questions of 4 options at its end. 0 if it fits in
  /// one.
  std::size_t beside(std::int64_t tokens, const MemoryNeeds& passes) const;

  const Model& model() const { return model_; }

 private:
  std::unique_ptr<Planner> planner_;
  Model model_;
};

/// How long passes are, and what they leave.
struct PassChoice {
  MemoryNeeds needs;       ///< with everything that is loaded at once
  MemoryNeeds with_tower;  ///< and with a vision tower that is loaded later; the same if none is
  std::int64_t longest_tokens =
      0;                    ///< the longest text that fits beside, tower included if that fits; at most max_tokens
  bool fits = false;        ///< `needs` do
  bool tower_fits = false;  ///< with_tower does
};

struct PassRequest {
  std::int64_t pass_tokens = 0;  ///< of the longest pass; 0: the longest that leaves room for a text of max_tokens
  std::int64_t max_tokens = 0;
  std::size_t room = 0;  ///< bytes for weights, activations, scratch and what records in pieces carry
};

/// @param with_tower  the same model with its tower; may be `model` itself
PassChoice choose_passes(const PlannedModel& model, const PlannedModel& with_tower, const PassRequest& request);

}  // namespace treble
