#include "engine/load.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "model/pieces.h"
#include "model/release_shapes.h"
#include "model/shape_source.h"
#include "model/synthetic.h"
#include "ops/planner.h"

namespace treble {
namespace {

void check(const DeviceOptions& options) {
  constexpr std::int64_t kFewest = kPieceUnit, kMost = 1 << 17;  // the most: patches' indices still fit the staging
  if (options.pass_tokens != 0 && (options.pass_tokens < kFewest || options.pass_tokens > kMost))
    throw Error(ErrorCode::kArgument, fmt::format("engine: passes of {} tokens (--pass-tokens); use {} to {}",
                                                  options.pass_tokens, kFewest, kMost));
}

/// @param config  of the model with its tower, if it has one
/// @param is_tower_later  it is left out of what is loaded first
PassChoice plan(const ModelConfig& config, WeightSource& shapes, bool is_tower_later, const Planner& planner,
                const PassRequest& request) {
  const PlannedModel whole(config, shapes, planner.make_planner());
  if (!is_tower_later) return choose_passes(whole, whole, request);
  ModelConfig text = config;
  text.vision.reset();
  return choose_passes(PlannedModel(text, shapes, planner.make_planner()), whole, request);
}

bool has_tower_later(const std::filesystem::path& folder, const EngineOptions& options) {
  return options.vision == VisionTower::kAuto && has_vision_tower(folder);
}

/// Takes what passes need inside operations, once it is known that everything fits and runs.
/// @param make_plan  returns a PassChoice for a planner and so much room
/// @return limits of passes, and of a device whose memory is planned what they were chosen by
template <typename MakePlan>
std::pair<PassLimits, std::optional<PassChoice>> reserve(Ops& ops, const DeviceOptions& options,
                                                         const MakePlan& make_plan) {
  check(options);
  const std::unique_ptr<Planner> planner = ops.make_planner();
  if (planner) {
    const PassChoice choice = make_plan(*planner, ops.room());
    ops.reserve(choice.needs);
    return {{.max_tokens = choice.needs.pass_tokens,
             .activation_bytes = choice.needs.activations,
             .longest_tokens = choice.longest_tokens},
            choice};
  }
  if (options.memory_limit != 0)
    throw Error(
        ErrorCode::kArgument,
        fmt::format("engine: --memory-limit is for GPUs, {} takes memory as it needs it; leave it out and limit "
                    "the process instead",
                    ops.name()));
  PassLimits limits;
  if (options.pass_tokens != 0) limits.max_tokens = options.pass_tokens;
  return {limits, std::nullopt};
}

}  // namespace

PassChoice plan_release(const std::filesystem::path& folder, const Planner& planner, std::size_t room,
                        const EngineOptions& options) {
  check(options.gpu);
  ModelConfig config = read_config(folder);
  if (options.vision == VisionTower::kOff) config.vision.reset();
  ReleaseShapes shapes(folder, options.weights);
  return plan(config, shapes, has_tower_later(folder, options), planner,
              {.pass_tokens = options.gpu.pass_tokens,
               .max_tokens = std::min(options.max_tokens, config.text.max_position_embeddings),
               .room = room});
}

LoadedModel load_release(std::unique_ptr<Ops> ops, const std::filesystem::path& folder, const EngineOptions& options) {
  const std::shared_ptr<void> binding = ops->bind_thread();
  const auto [limits, choice] = reserve(*ops, options.gpu, [&](const Planner& planner, std::size_t room) {
    return plan_release(folder, planner, room, options);
  });
  const bool is_off = options.vision == VisionTower::kOff;
  const bool is_later = choice && has_tower_later(folder, options);  // a CPU reads its weights where they are
  Model model = load_model(folder, *ops, options.weights, options.load_progress,
                           is_later || is_off ? TowerLoading::kLater : TowerLoading::kNow);
  TowerOnDemand tower;
  tower.is_off = is_off && has_vision_tower(folder);
  if (is_later) {
    tower.load = [folder, conversion = options.weights](Ops& device, Model& to) {
      load_tower(folder, device, conversion, to);
    };
    tower.weight_bytes = choice->with_tower.weights - choice->needs.weights;
    tower.needs = choice->with_tower;
  }
  return {std::move(ops), std::move(model), limits, std::move(tower)};
}

LoadedModel load_synthetic(std::unique_ptr<Ops> ops, const ModelConfig& config, const EngineOptions& options) {
  const std::shared_ptr<void> binding = ops->bind_thread();
  constexpr bool kIsTowerLater = false;  // its weights are made with the others
  const auto [limits, choice] = reserve(*ops, options.gpu, [&](const Planner& planner, std::size_t room) {
    ShapeSource shapes(config.vision.has_value(), options.weights);
    return plan(config, shapes, kIsTowerLater, planner,
                {.pass_tokens = options.gpu.pass_tokens, .max_tokens = options.max_tokens, .room = room});
  });
  Model model = synthetic_model(config, *ops, options.weights, options.load_progress);
  return {std::move(ops), std::move(model), limits, {}};
}

}  // namespace treble
