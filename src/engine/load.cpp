#include "engine/load.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <utility>

#include "engine/memory_plan.h"
#include "model/pieces.h"
#include "model/release_shapes.h"
#include "model/shape_source.h"
#include "model/synthetic.h"
#include "ops/planner.h"

namespace treble {
namespace {

constexpr std::int64_t kUsualPass = 16384;  // tokens

/// Takes what passes need inside operations, once it is known that everything fits and runs.
/// @param open_shapes  returns the weights' shapes and formats
template <typename OpenShapes>
PassLimits reserve(Ops& ops, const ModelConfig& config, const DeviceOptions& options, const OpenShapes& open_shapes) {
  constexpr std::int64_t kFewest = kPieceUnit, kMost = 1 << 17;  // the most: patches' indices still fit the staging
  const std::int64_t asked = options.pass_tokens;
  if (asked != 0 && (asked < kFewest || asked > kMost))
    throw Error(ErrorCode::kArgument,
                fmt::format("engine: passes of {} tokens (--pass-tokens); use {} to {}", asked, kFewest, kMost));
  const std::unique_ptr<Planner> planner = ops.make_planner();
  if (!planner) return asked == 0 ? PassLimits{} : PassLimits{.max_tokens = asked};
  const std::int64_t pass_tokens = asked == 0 ? kUsualPass : asked;
  auto shapes = open_shapes();
  const MemoryNeeds needs = plan_memory(config, shapes, pass_tokens, *planner);
  ops.reserve(needs);
  return {.max_tokens = pass_tokens, .activation_bytes = needs.activations};
}

}  // namespace

LoadedModel load_release(std::unique_ptr<Ops> ops, const std::filesystem::path& folder, const EngineOptions& options) {
  const std::shared_ptr<void> binding = ops->bind_thread();
  const PassLimits limits =
      reserve(*ops, read_config(folder), options.gpu, [&] { return ReleaseShapes(folder, options.weights); });
  Model model = load_model(folder, *ops, options.weights, options.load_progress);
  return {std::move(ops), std::move(model), limits};
}

LoadedModel load_synthetic(std::unique_ptr<Ops> ops, const ModelConfig& config, const EngineOptions& options) {
  const std::shared_ptr<void> binding = ops->bind_thread();
  const PassLimits limits =
      reserve(*ops, config, options.gpu, [&] { return ShapeSource(config.vision.has_value(), options.weights); });
  Model model = synthetic_model(config, *ops, options.weights, options.load_progress);
  return {std::move(ops), std::move(model), limits};
}

}  // namespace treble
