#pragma once

#include <treble/engine.h>
#include <treble/record.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "model/weights.h"
#include "ops/ops.h"
#include "tensor/workspace.h"

namespace treble {

/// Receives hidden states while a pass runs: "embed", "layer00.out", ... (the residual stream after the embedding and
/// after each layer) and "hidden" (what the head reads). For reports: every stage is copied to the host.
/// @param rows  [T, hidden_size] f32, valid during the call only
using HiddenObserver = std::function<void(const std::string& stage, std::span<const float> rows)>;

/// A model on its backend: from encoded records to logits, the middle of the spine. Thread-safe; calls queue.
class Pipeline {
 public:
  Pipeline(std::unique_ptr<Ops> ops, Model model, int num_threads);

  /// @return [record][question][option] logits in the model's option order
  std::vector<std::vector<std::vector<float>>> run(std::span<const EncodedRecord> records, Timings* timings = nullptr,
                                                   const HiddenObserver& observer = {});

  const Model& model() const { return model_; }
  std::size_t peak_activation_bytes() const;

 private:
  const int num_threads_;
  mutable std::mutex mutex_;  // ops_ and workspace_ serve one pass at a time
  std::unique_ptr<Ops> ops_;
  Model model_;
  Workspace workspace_;
};

/// As many threads as asked for, or as this process may use. @throws Error kArgument if negative or above 1,024
int resolve_threads(int num_threads);

}  // namespace treble
