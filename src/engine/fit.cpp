#include "engine/fit.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>

#include "engine/backend.h"
#include "engine/load.h"

namespace treble {
namespace {

std::string gib(std::size_t num_bytes) {
  constexpr double kGiB = 1 << 30;
  return fmt::format("{:.2f} GiB", static_cast<double>(num_bytes) / kGiB);
}

Json bytes_json(std::size_t num_bytes) {
  return Json::integer(static_cast<long long>(num_bytes));
}

}  // namespace

FitReport plan_fit(const std::filesystem::path& folder, const EngineOptions& options) {
  if (options.gpu.memory_limit == 0)
    throw Error(ErrorCode::kArgument, "engine: no amount of memory to plan with; give --memory-limit");
  const std::size_t room = room_of_limit(options.gpu.memory_limit);
  const std::unique_ptr<Planner> planner = make_planner(options.precision, options.gpu);
  const PassChoice choice = plan_release(folder, *planner, room, options);
  const MemoryNeeds &needs = choice.needs, &whole = choice.with_tower;
  return {.limit_bytes = options.gpu.memory_limit,
          .room_bytes = room,
          .weight_bytes = needs.weights,
          .tower_bytes = whole.weights - needs.weights,
          .activation_bytes = needs.activations,
          .scratch_bytes = needs.scratch,
          .tower_pass_bytes = whole.activations - std::min(whole.activations, needs.activations) + whole.scratch -
                              std::min(whole.scratch, needs.scratch),
          .pass_tokens = needs.pass_tokens,
          .longest_tokens = choice.longest_tokens,
          .fits = choice.fits,
          .tower_fits = choice.tower_fits};
}

std::string to_text(const FitReport& report) {
  std::string text = fmt::format(
      "memory of a GPU: {}, of which {} for the model\n"
      "  {} of weights, {} of activations and {} of scratch for passes of {} tokens{}\n",
      gib(report.limit_bytes), gib(report.room_bytes), gib(report.weight_bytes), gib(report.activation_bytes),
      gib(report.scratch_bytes), report.pass_tokens, report.fits ? "" : ": does not fit");
  if (report.tower_bytes > 0)
    text += fmt::format("  {} more for the vision tower, when a picture comes{}\n",
                        gib(report.tower_bytes + report.tower_pass_bytes),
                        report.tower_fits ? "" : ": does not fit, pictures will be refused");
  if (report.fits) text += fmt::format("  texts of {} tokens, in pieces\n", report.longest_tokens);
  return text;
}

Json to_json(const FitReport& report) {
  return Json::Object{{"limit_bytes", bytes_json(report.limit_bytes)},
                      {"room_bytes", bytes_json(report.room_bytes)},
                      {"weight_bytes", bytes_json(report.weight_bytes)},
                      {"tower_bytes", bytes_json(report.tower_bytes)},
                      {"activation_bytes", bytes_json(report.activation_bytes)},
                      {"scratch_bytes", bytes_json(report.scratch_bytes)},
                      {"tower_pass_bytes", bytes_json(report.tower_pass_bytes)},
                      {"pass_tokens", Json::integer(report.pass_tokens)},
                      {"longest_tokens", Json::integer(report.longest_tokens)},
                      {"fits", Json(report.fits)},
                      {"tower_fits", Json(report.tower_fits)}};
}

}  // namespace treble
