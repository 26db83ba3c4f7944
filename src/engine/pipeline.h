#pragma once

#include <treble/engine.h>
#include <treble/record.h>

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "model/weights.h"
#include "ops/ops.h"
#include "tensor/workspace.h"

namespace treble {

/// A model on its backend: from encoded records to logits, the middle of the spine. Thread-safe; calls queue.
class Pipeline {
 public:
  Pipeline(std::unique_ptr<Ops> ops, Model model, int num_threads);

  /// @return [record][question][option] logits in the model's option order
  std::vector<std::vector<std::vector<float>>> run(std::span<const EncodedRecord> records, Timings* timings = nullptr);

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
