#pragma once

#include <treble/engine.h>
#include <treble/record.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/load.h"
#include "engine/vision_stage.h"
#include "model/packed_batch.h"
#include "model/trace.h"
#include "model/weights.h"
#include "ops/ops.h"
#include "tensor/workspace.h"

namespace treble {

/// Receives hidden states while a pass runs: "embed", "layer00.out", ... (the residual stream after the embedding,
/// media not yet in place, and after each layer) and "hidden" (what the head reads). For reports: every stage is copied
/// to the host. Of a record that is read in pieces, all stages of a piece come before those of the next.
/// @param rows  [T, hidden_size] f32, valid during the call only
using HiddenObserver = std::function<void(const std::string& stage, std::span<const float> rows)>;

/// A model on its backend: from encoded records to logits, the middle of the spine. Thread-safe; calls queue.
class Pipeline {
 public:
  static constexpr std::size_t kVisionCacheBytes = std::size_t{256} << 20;

  /// @param vision_cache_bytes  of the vision tower's results, the most that is kept
  Pipeline(std::unique_ptr<Ops> ops, Model model, int num_threads, std::size_t vision_cache_bytes = kVisionCacheBytes,
           const PassLimits& limits = {}, TowerOnDemand tower = {});
  Pipeline(LoadedModel loaded, int num_threads, std::size_t vision_cache_bytes = kVisionCacheBytes)
      : Pipeline(std::move(loaded.ops), std::move(loaded.model), num_threads, vision_cache_bytes, loaded.limits,
                 std::move(loaded.tower)) {}

  /// Records that do not fit in one pass go through in several; one that is longer than a pass, in pieces.
  /// @return [record][question][option] logits in the model's option order
  /// @throws Error kRequest if a record has media and the release no vision tower; kTooLong if one is longer than the
  ///         device has memory for, or all are more than a pass and an observer would see them apart
  std::vector<std::vector<std::vector<float>>> run(std::span<const EncodedRecord> records, Timings* timings = nullptr,
                                                   const HiddenObserver& observer = {});

  /// Its vision tower may be added by the first run that has images or videos.
  const Model& model() const { return model_; }
  /// Whether it reads images and videos.
  bool reads_media() const { return model_.vision || tower_.load; }
  const PassLimits& limits() const { return limits_; }
  /// @throws Error kTooLong if the device has no memory for what a record that is read in pieces carries
  void require_room(const EncodedRecord& record);

  std::size_t peak_activation_bytes() const;
  /// Bytes that are held for activations, in use or not.
  std::size_t held_activation_bytes() const;
  /// Bytes that are held for what records in pieces carry from one to the next: none before the first such record.
  std::size_t held_carried_bytes() const;
  /// The most of them that were in use at once.
  std::size_t peak_carried_bytes() const;
  /// What the backend holds beside them.
  HeldMemory held_memory() const;
  /// Images and clips that the vision tower has computed so far: those that came again are not computed again.
  std::size_t num_computed_media() const;

 private:
  std::vector<std::vector<std::vector<float>>> run_pass(std::span<const EncodedRecord> records, Timings* timings,
                                                        const HiddenObserver& observer);
  /// The stages of a pass; each calls `mark` when it begins, and the last when it ends.
  std::vector<float> run_whole(const PackedBatch& batch, const Trace& trace, const std::function<void()>& mark);
  std::vector<float> run_pieces(const PackedBatch& batch, const Trace& trace, const std::function<void()>& mark);
  /// Loads the vision tower if it is not there. @throws Error kRequest: there is none; kDevice: no memory for it
  void require_tower();
  /// Takes memory for what a record carries, if it is planned and there is none yet. @throws Error kTooLong
  void reserve_carried(const PackedBatch& batch);

  const int num_threads_;
  const PassLimits limits_;
  mutable std::mutex mutex_;  // ops_ and workspace_ serve one pass at a time
  std::unique_ptr<Ops> ops_;
  Model model_;
  TowerOnDemand tower_;
  Workspace workspace_;
  Workspace carried_;  // from piece to piece of a record that is longer than a pass
  VisionStage vision_;
};

/// As many threads as asked for, or as this process may use. @throws Error kArgument if negative or above 1,024
int resolve_threads(int num_threads);

}  // namespace treble
