#include "engine/choose_passes.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/memory_plan.h"
#include "engine/pack.h"

namespace treble {
namespace {

/// Lengths that are tried, the longest first. A pass of 2,048 tokens or more keeps a GPU's products busy; shorter ones
/// are for models that hardly fit.
constexpr std::array<std::int64_t, 10> kLengths = {16384, 12288, 8192, 6144, 4096, 3072, 2048, 1024, 512, 256};
constexpr std::int64_t kShortEnough = 2048;

std::size_t sum_of(const MemoryNeeds& needs) {
  return needs.weights + needs.activations + needs.scratch;
}

EncodedRecord typical_record(std::int64_t tokens) {
  constexpr std::int64_t kQuestions = 8, kOptions = 4, kSpan = 16;
  EncodedRecord record;
  record.input_ids.assign(static_cast<std::size_t>(tokens), 0);
  const auto end = static_cast<std::int32_t>(tokens);
  const auto first = static_cast<std::int32_t>(std::max<std::int64_t>(0, tokens - kQuestions * (kOptions + 1) * kSpan));
  for (std::int64_t q = 0; q < kQuestions; ++q) {
    EncodedQuestion& question = record.questions.emplace_back();
    question.question_span = {first, end};
    question.option_spans.assign(kOptions, {first, end});
  }
  return record;
}

}  // namespace

PlannedModel::PlannedModel(const ModelConfig& config, WeightSource& shapes, std::unique_ptr<Planner> planner)
    : planner_(std::move(planner)), model_(build_model(config, shapes, *planner_)) {}

MemoryNeeds PlannedModel::passes(std::int64_t pass_tokens) const {
  const std::unique_ptr<Planner> planner = planner_->make_planner();
  MemoryNeeds needs = planner_->needs();
  needs.pass_tokens = pass_tokens;
  needs.activations = plan_passes(model_, pass_tokens, *planner);
  needs.scratch = planner->needs().scratch;
  return needs;
}

std::size_t PlannedModel::beside(std::int64_t tokens, const MemoryNeeds& passes) const {
  if (tokens <= passes.pass_tokens) return 0;
  const std::unique_ptr<Planner> planner = planner_->make_planner();
  const EncodedRecord record = typical_record(tokens);
  const PiecesNeeds needs = plan_pieces(model_, pack_batch(std::span(&record, 1), model_.config.text.vocab_size),
                                        passes.pass_tokens, *planner);
  return needs.carried + needs.scratch - std::min(needs.scratch, passes.scratch);
}

PassChoice choose_passes(const PlannedModel& model, const PlannedModel& with_tower, const PassRequest& request) {
  const auto choose = [&](std::int64_t pass_tokens) {
    PassChoice choice{.needs = model.passes(pass_tokens), .with_tower = with_tower.passes(pass_tokens)};
    choice.fits = sum_of(choice.needs) <= request.room;
    choice.tower_fits = sum_of(choice.with_tower) <= request.room;
    return choice;
  };
  const auto fits_beside = [&](const PassChoice& choice, std::int64_t tokens) {
    const MemoryNeeds& needs = choice.tower_fits ? choice.with_tower : choice.needs;
    return choice.fits && sum_of(needs) + model.beside(tokens, needs) <= request.room;
  };
  /// The longest text, in steps of a kPassUnit: what it takes grows with its length.
  const auto find_longest = [&](PassChoice choice) {
    if (!choice.fits) return choice;
    std::int64_t fitting = std::min(request.max_tokens, choice.needs.pass_tokens) / kPassUnit;
    std::int64_t too_long = request.max_tokens / kPassUnit + 1;
    if (fits_beside(choice, request.max_tokens)) fitting = too_long;
    while (fitting + 1 < too_long) {
      const std::int64_t middle = fitting + (too_long - fitting) / 2;
      (fits_beside(choice, middle * kPassUnit) ? fitting : too_long) = middle;
    }
    choice.longest_tokens = std::min(fitting * kPassUnit, request.max_tokens);
    return choice;
  };

  if (request.pass_tokens != 0) return find_longest(choose(request.pass_tokens));
  PassChoice best;
  for (const std::int64_t pass_tokens : kLengths) {
    const PassChoice choice = choose(pass_tokens);
    if (choice.tower_fits && fits_beside(choice, request.max_tokens)) return find_longest(choice);
    if (!best.fits || pass_tokens >= kShortEnough || (choice.tower_fits && !best.tower_fits)) best = choice;
  }
  return find_longest(best);
}

}  // namespace treble
