#include "engine/memory_plan.h"

#include <algorithm>
#include <span>

#include "engine/pack.h"
#include "engine/vision_stage.h"
#include "model/backbone.h"
#include "model/head.h"
#include "model/pieces.h"
#include "model/vision.h"
#include "tensor/counting_memory.h"
#include "tensor/workspace.h"

namespace treble {
namespace {

/// A pass of whole units of kPassUnit tokens, a record in each.
/// @param num_questions  at least one a record; the first options are theirs, the last question has the rest
PackedBatch make_batch(std::int64_t num_tokens, std::int64_t num_questions, std::int64_t num_options) {
  const auto T = static_cast<std::int32_t>(num_tokens), Q = static_cast<std::int32_t>(num_questions),
             O = static_cast<std::int32_t>(num_options), N = static_cast<std::int32_t>(num_tokens / kPassUnit);
  PackedBatch batch;
  batch.input_ids.assign(static_cast<std::size_t>(T), 0);
  batch.positions.assign(static_cast<std::size_t>(3 * T), 0);
  batch.media_tokens.assign(static_cast<std::size_t>(T), 0);
  batch.cu_questions = batch.cu_options = {0};
  for (std::int32_t n = 0; n <= N; ++n) batch.cu_seqlens.push_back(n * static_cast<std::int32_t>(kPassUnit));
  for (std::int32_t q = 0; q < Q; ++q) {
    batch.question_spans.insert(batch.question_spans.end(), {0, 1});
    batch.question_types.push_back(0);
    batch.question_record.push_back(std::min(q, N - 1));
    batch.cu_question_options.push_back(q);
  }
  batch.cu_question_options.push_back(O);
  for (std::int32_t o = 0; o < O; ++o) {
    batch.option_spans.insert(batch.option_spans.end(), {0, 1});
    batch.option_question.push_back(std::min(o, Q - 1));
  }
  for (std::int32_t n = 1; n < N; ++n) {
    batch.cu_questions.push_back(n);
    batch.cu_options.push_back(n);
  }
  batch.cu_questions.push_back(Q);
  batch.cu_options.push_back(O);
  return batch;
}

/// What VisionStage takes while it computes what is not known yet: at most the patches behind all tokens of a pass at
/// once. An item alone takes as much as several.
void run_tower(const Model& model, std::int64_t num_tokens, Ops& ops, Workspace& workspace) {
  constexpr std::int64_t kRows = VisionConfig::kSpatialMergeSize;
  const std::int64_t columns = num_tokens * VisionConfig::kMergedPatches / kRows;
  const auto num_levels = static_cast<std::size_t>(kRows * columns * VisionConfig::kPatchFeatures);
  CountingMemory nowhere;
  const VisionItem item{.grid_t = 1,
                        .grid_h = kRows,
                        .grid_w = columns,
                        .frames_per_patch = VisionConfig::kTemporalPatchSize,
                        .levels = {static_cast<const std::uint8_t*>(nowhere.allocate(num_levels)), num_levels},
                        .mean = {},
                        .deviation = {1, 1, 1},
                        .digest = {}};
  const Workspace::Scope scope(workspace);
  run_vision(model, std::span(&item, 1), ops, workspace);
}

/// What Pipeline::run takes for one pass, whose tokens may all be media, once the tower is done.
void run_pass(const Model& model, const PackedBatch& batch, Ops& ops, Workspace& workspace) {
  const Workspace::Scope scope(workspace);
  TensorView media_features;
  if (model.vision)
    media_features = workspace.take(ops.activation_dtype(), {batch.total_tokens(), model.config.text.hidden_size});
  const TensorView hidden = run_backbone(model, batch, media_features, ops, workspace);
  run_head(model, batch, hidden, ops, workspace);
}

}  // namespace

MemoryNeeds plan_memory(const ModelConfig& config, WeightSource& shapes, std::int64_t pass_tokens, Planner& planner) {
  const Model model = build_model(config, shapes, planner);
  const std::size_t activations = plan_passes(model, pass_tokens, planner);
  MemoryNeeds needs = planner.needs();
  needs.pass_tokens = pass_tokens;
  needs.activations = activations;
  return needs;
}

std::size_t plan_passes(const Model& model, std::int64_t pass_tokens, Planner& planner) {
  // Memory grows with tokens, records, questions and options, each stage's in proportion, so the most is where a pass
  // is at the edges of what may be packed: a record to each unit of tokens, a question to each record, and no more
  // questions and options together than tokens.
  const std::int64_t tokens = round_up_to_unit(pass_tokens), records = tokens / kPassUnit;
  Workspace workspace(planner.memory());
  if (model.vision) run_tower(model, tokens, planner, workspace);
  for (const std::int64_t questions : {records, tokens / 2})
    run_pass(model, make_batch(tokens, questions, tokens - questions), planner, workspace);
  return workspace.peak_bytes();
}

PiecesNeeds plan_pieces(const Model& model, const PackedBatch& batch, std::int64_t piece_tokens, Planner& planner) {
  Workspace workspace(planner.memory()), carried(planner.memory());
  TensorView media_features;
  if (!batch.media.empty()) {
    // Any of the items may be known already, so any of them may go through the tower together.
    std::int64_t largest = 0, all = 0;
    for (const VisionItem& item : batch.media) {
      largest = std::max(largest, item.num_patches());
      all += item.num_patches();
    }
    const std::int64_t patches = std::max(largest, std::min(all, VisionStage::kGroupPatches));
    run_tower(model, patches / VisionConfig::kMergedPatches, planner, carried);
    CountingMemory host;
    media_features = TensorView(host.allocate(1), planner.activation_dtype(),
                                {std::ssize(batch.media_tokens), model.config.text.hidden_size});
  }
  const HeadMemory memory = read_in_pieces(model, batch, media_features, piece_tokens, planner, workspace, carried);
  run_head(model, batch, memory, piece_tokens, planner, carried);
  return {carried.peak_bytes(), planner.needs().scratch};
}

}  // namespace treble
