#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/ops.h"

namespace treble {

/// What a model and its passes take of a backend's memory, bytes.
struct MemoryNeeds {
  std::int64_t pass_tokens = 0;  ///< of the longest pass that the figures below are for
  std::size_t weights = 0;       ///< in the device's memory
  std::size_t tables = 0;        ///< vocabulary tables, part of `weights`
  std::size_t host_tables = 0;   ///< vocabulary tables that stay in the host's memory
  std::size_t activations = 0;   ///< between operations, the most at once
  std::size_t scratch = 0;       ///< inside operations, the most at once
};

/// Operations that check shapes and compute nothing, over memory that only counts (CountingMemory). A model that is
/// placed and run through them tells, before anything is loaded, what the backend that made them will take: weights and
/// scratch in needs(), activations as the peak of the workspace that the passes ran in.
class Planner : public Ops {
 public:
  /// So far; `activations` and `pass_tokens` are the caller's.
  virtual MemoryNeeds needs() const = 0;
};

}  // namespace treble
