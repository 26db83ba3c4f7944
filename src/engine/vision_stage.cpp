#include "engine/vision_stage.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "model/vision.h"

namespace treble {
namespace {

/// The first items that go through the tower together.
std::size_t group_size(std::span<const VisionItem> items) {
  std::size_t count = 1;
  std::int64_t patches = items.front().num_patches();
  while (count < items.size() && patches + items[count].num_patches() <= VisionStage::kGroupPatches)
    patches += items[count++].num_patches();
  return count;
}

}  // namespace

TensorView VisionStage::run(const Model& model, std::span<const VisionItem> items, Ops& ops, Workspace& workspace) {
  return ops.upload(workspace, run_to_host(model, items, ops, workspace));
}

TensorView VisionStage::run_to_host(const Model& model, std::span<const VisionItem> items, Ops& ops,
                                    Workspace& workspace) {
  const std::int64_t hidden_size = model.config.text.hidden_size;
  const std::size_t row_bytes = static_cast<std::size_t>(hidden_size) * size_of(ops.activation_dtype());
  const auto num_bytes = [&](const VisionItem& item) {
    return static_cast<std::size_t>(item.num_features()) * row_bytes;
  };

  // What each item's features are; of equal items one is computed.
  std::vector<std::shared_ptr<const Features>> found(items.size());
  std::vector<VisionItem> missing;
  std::vector<std::size_t> computed_as(items.size());  // index into missing
  std::map<std::string_view, std::size_t> known;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const VisionItem& item = items[i];
    if (!item.digest.empty() && (found[i] = cache_.find(item.digest))) continue;
    const auto [place, is_new] = known.try_emplace(item.digest, missing.size());
    computed_as[i] = place->second;
    if (is_new || item.digest.empty()) {
      computed_as[i] = missing.size();
      missing.push_back(item);
    }
  }

  std::vector<std::shared_ptr<const Features>> computed;
  while (computed.size() < missing.size()) {
    const std::span<const VisionItem> rest = std::span<const VisionItem>(missing).subspan(computed.size());
    const std::span<const VisionItem> group = rest.first(group_size(rest));
    const Workspace::Scope scope(workspace);
    const TensorView features = run_vision(model, group, ops, workspace);
    std::int64_t row = 0;
    for (const VisionItem& item : group) {
      auto copy = std::make_shared<Features>(num_bytes(item));
      ops.download(features.rows(row, row + item.num_features()), copy->data());
      row += item.num_features();
      if (!item.digest.empty()) cache_.insert(std::string(item.digest), copy, copy->size() + item.digest.size());
      computed.push_back(std::move(copy));
    }
  }
  num_computed_ += computed.size();

  host_.clear();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Features& features = found[i] ? *found[i] : *computed[computed_as[i]];
    host_.insert(host_.end(), features.begin(), features.end());
  }
  const auto num_rows = static_cast<std::int64_t>(host_.size() / row_bytes);
  return TensorView(host_.data(), ops.activation_dtype(), {num_rows, hidden_size});
}

}  // namespace treble
