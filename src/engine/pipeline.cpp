#include "engine/pipeline.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>

#include "base/parallel.h"
#include "engine/memory_plan.h"
#include "engine/pack.h"
#include "model/backbone.h"
#include "model/head.h"
#include "model/pieces.h"
#include "tensor/bfloat16.h"

namespace treble {
namespace {

/// Copies a view [T, h] of activations to the host and hands it on as f32.
void observe(Ops& ops, const HiddenObserver& observer, const std::string& stage, const TensorView& view) {
  std::vector<float> rows(static_cast<std::size_t>(view.num_elements()));
  if (view.dtype() == DType::kF32) {
    ops.download(view, rows.data());
  } else {
    std::vector<bfloat16> narrow(rows.size());
    ops.download(view, narrow.data());
    std::ranges::transform(narrow, rows.begin(), [](bfloat16 x) { return to_float(x); });
  }
  observer(stage, rows);
}

double in_mib(std::size_t num_bytes) {
  constexpr double kMiB = 1 << 20;
  return static_cast<double>(num_bytes) / kMiB;
}

/// The stages of a pass that an observer sees.
bool is_observed(const std::string& stage) {
  return stage == "embed" || stage == "hidden" || stage.ends_with(".out");
}

}  // namespace

Pipeline::Pipeline(std::unique_ptr<Ops> ops, Model model, int num_threads, std::size_t vision_cache_bytes,
                   const PassLimits& limits, TowerOnDemand tower)
    : num_threads_(resolve_threads(num_threads)),
      limits_(limits),
      ops_(std::move(ops)),
      model_(std::move(model)),
      tower_(std::move(tower)),
      workspace_(ops_->memory()),
      carried_(ops_->memory()),
      vision_(vision_cache_bytes) {
  workspace_.reserve(limits.activation_bytes);
}

std::vector<std::vector<std::vector<float>>> Pipeline::run(std::span<const EncodedRecord> records, Timings* timings,
                                                           const HiddenObserver& observer) {
  const std::vector<std::span<const EncodedRecord>> passes = split_into_passes(records, limits_.max_tokens);
  if (observer) require_one_pass(records, limits_.max_tokens, "observing hidden states");
  std::vector<std::vector<std::vector<float>>> logits;
  for (const std::span<const EncodedRecord> pass : passes) {
    auto of_pass = run_pass(pass, timings, observer);
    logits.insert(logits.end(), std::make_move_iterator(of_pass.begin()), std::make_move_iterator(of_pass.end()));
  }
  return logits;
}

std::vector<std::vector<std::vector<float>>> Pipeline::run_pass(std::span<const EncodedRecord> records,
                                                                Timings* timings, const HiddenObserver& observer) {
  const PackedBatch batch = pack_batch(records, model_.config.text.vocab_size);

  const std::lock_guard lock(mutex_);
  const std::shared_ptr<void> binding = ops_->bind_thread();
  const ThreadCount threads(num_threads_);
  if (!batch.media.empty()) require_tower();
  const std::unique_ptr<Stopwatch> stopwatch = timings ? ops_->make_stopwatch() : nullptr;
  std::vector<std::chrono::steady_clock::time_point> queued;  // at each mark, when the work before it was queued
  const std::function<void()> mark = [&] {
    if (!stopwatch) return;
    stopwatch->mark();
    queued.push_back(std::chrono::steady_clock::now());
  };
  Trace trace;
  if (observer) {
    trace = [&](const std::string& stage, const TensorView& view) {
      if (is_observed(stage)) observe(*ops_, observer, stage, view);
    };
  }
  const std::vector<float> logits = needs_pieces(records.front(), limits_.max_tokens) ? run_pieces(batch, trace, mark)
                                                                                      : run_whole(batch, trace, mark);
  if (timings) {
    const std::vector<double> stages = stopwatch->stages_ms();
    timings->vision_ms += stages[0];
    timings->backbone_ms += stages[1];
    timings->head_ms += stages[2];
    timings->queue_ms += std::chrono::duration<double, std::milli>(queued[2] - queued[1]).count();
  }
  return unpack_logits(records, logits);
}

std::vector<float> Pipeline::run_whole(const PackedBatch& batch, const Trace& trace,
                                       const std::function<void()>& mark) {
  const Workspace::Scope scope(workspace_);
  mark();
  TensorView media_features;
  if (!batch.media.empty()) media_features = vision_.run(model_, batch.media, *ops_, workspace_);
  mark();
  const TensorView hidden = run_backbone(model_, batch, media_features, *ops_, workspace_, trace);
  if (trace) trace("hidden", hidden);
  mark();
  std::vector<float> logits = run_head(model_, batch, hidden, *ops_, workspace_);
  mark();
  return logits;
}

std::vector<float> Pipeline::run_pieces(const PackedBatch& batch, const Trace& trace,
                                        const std::function<void()>& mark) {
  reserve_carried(batch);
  const Workspace::Scope scope(carried_);
  mark();
  TensorView media_features;
  if (!batch.media.empty()) media_features = vision_.run_to_host(model_, batch.media, *ops_, carried_);
  mark();
  const HeadMemory memory =
      read_in_pieces(model_, batch, media_features, limits_.max_tokens, *ops_, workspace_, carried_, trace);
  mark();
  std::vector<float> logits = run_head(model_, batch, memory, limits_.max_tokens, *ops_, carried_);
  mark();
  return logits;
}

void Pipeline::require_tower() {
  if (model_.vision) return;
  if (tower_.is_off)
    throw Error(ErrorCode::kRequest,
                "request: has images or videos, but the model was loaded without its vision tower (--vision off); send "
                "text only, or load it with --vision auto");
  if (!tower_.load)
    throw Error(ErrorCode::kRequest,
                "request: has images or videos, but this release has no vision tower; send text only, or use a release "
                "with model.visual.* tensors");
  const auto missing = [](std::size_t needed, std::size_t held) { return needed > held ? needed - held : 0; };
  const std::size_t more = tower_.weight_bytes + missing(tower_.needs.activations, workspace_.held_bytes()) +
                           missing(tower_.needs.scratch, ops_->held_memory().scratch);
  if (more > ops_->room()) carried_.release();  // the next record in pieces takes it again
  if (const std::size_t room = ops_->room(); more > room)
    throw Error(ErrorCode::kDevice,
                fmt::format("device: the vision tower takes {:.0f} MiB ({:.0f} of weights), {:.0f} MiB are left; lower "
                            "--pass-tokens, give the process more of the device, or send text only",
                            in_mib(more), in_mib(tower_.weight_bytes), in_mib(room)));
  tower_.load(*ops_, model_);
  workspace_.reserve(std::max(tower_.needs.activations, workspace_.held_bytes()));
  ops_->reserve({.pass_tokens = tower_.needs.pass_tokens, .scratch = tower_.needs.scratch});
}

void Pipeline::reserve_carried(const PackedBatch& batch) {
  const std::unique_ptr<Planner> planner = ops_->make_planner();
  if (!planner) return;  // memory is taken as it is needed
  const PiecesNeeds needs = plan_pieces(model_, batch, limits_.max_tokens, *planner);
  if (needs.carried > carried_.held_bytes()) carried_.release();
  const std::size_t scratch = ops_->held_memory().scratch, held = carried_.held_bytes();
  const std::size_t more =
      (needs.carried > held ? needs.carried - held : 0) + (needs.scratch > scratch ? needs.scratch - scratch : 0);
  if (const std::size_t room = ops_->room(); more > room) {
    throw Error(ErrorCode::kTooLong,
                fmt::format("engine: a record of {} tokens in pieces of {} takes {:.0f} MiB beside the passes' memory "
                            "(keys, values and states of its tokens), {:.0f} MiB are left; shorten \"state\", lower "
                            "--pass-tokens, or give the process more of the device",
                            batch.total_tokens(), limits_.max_tokens, in_mib(more), in_mib(room)));
  }
  carried_.reserve(std::max(needs.carried, held));
  if (needs.scratch > scratch) ops_->reserve({.pass_tokens = limits_.max_tokens, .scratch = needs.scratch});
}

void Pipeline::require_room(const EncodedRecord& record) {
  if (!needs_pieces(record, limits_.max_tokens)) return;
  const PackedBatch batch = pack_batch(std::span(&record, 1), model_.config.text.vocab_size);
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<void> binding = ops_->bind_thread();
  if (!batch.media.empty()) require_tower();
  reserve_carried(batch);
}

std::size_t Pipeline::peak_activation_bytes() const {
  const std::lock_guard lock(mutex_);
  return workspace_.peak_bytes();
}

std::size_t Pipeline::held_activation_bytes() const {
  const std::lock_guard lock(mutex_);
  return workspace_.held_bytes();
}

std::size_t Pipeline::held_carried_bytes() const {
  const std::lock_guard lock(mutex_);
  return carried_.held_bytes();
}

std::size_t Pipeline::peak_carried_bytes() const {
  const std::lock_guard lock(mutex_);
  return carried_.peak_bytes();
}

HeldMemory Pipeline::held_memory() const {
  const std::lock_guard lock(mutex_);
  return ops_->held_memory();
}

std::size_t Pipeline::num_computed_media() const {
  const std::lock_guard lock(mutex_);
  return vision_.num_computed();
}

int resolve_threads(int num_threads) {
  constexpr int kMost = 1024;
  if (num_threads < 0 || num_threads > kMost)
    throw Error(ErrorCode::kArgument, fmt::format("engine: {} threads; use 1 to {}, or 0 for all", num_threads, kMost));
  return num_threads == 0 ? available_threads() : num_threads;
}

}  // namespace treble
