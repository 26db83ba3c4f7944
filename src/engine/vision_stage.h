#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/lru_cache.h"
#include "model/vision_item.h"
#include "model/weights.h"
#include "ops/ops.h"
#include "tensor/workspace.h"

namespace treble {

/// Runs the vision tower, and keeps what it gave: an item that comes again, in the same pass or a later one, is not
/// computed again.
class VisionStage {
 public:
  /// Patches that go through the tower at once, unless one item alone has more: they bound the scratch memory.
  static constexpr std::int64_t kGroupPatches = 16384;

  /// @param cache_bytes  the most that is kept
  explicit VisionStage(std::size_t cache_bytes) : cache_(cache_bytes) {}

  /// @return [sum of num_features(), h] act: the items' features in order, from the workspace or this object, which
  ///         keeps them until the next call
  TensorView run(const Model& model, std::span<const VisionItem> items, Ops& ops, Workspace& workspace);

  /// The same in host memory: in this object, until the next call. The workspace is for what the tower takes.
  TensorView run_to_host(const Model& model, std::span<const VisionItem> items, Ops& ops, Workspace& workspace);

  /// Items that the tower has computed so far.
  std::size_t num_computed() const { return num_computed_; }

 private:
  using Features = std::vector<std::byte>;  // [num_features(), h] act, in host memory

  LruCache<Features> cache_;
  Features host_;
  std::size_t num_computed_ = 0;
};

}  // namespace treble
