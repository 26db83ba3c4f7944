#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint.h"
#include "checkpoint/storage_format.h"
#include "model/shape_source.h"

namespace treble {

/// The shapes and formats of a release folder's weights, from the headers of its files and the descriptions of
/// quantised modules alone.
class ReleaseShapes final : public ShapeSource {
 public:
  /// @throws Error kCheckpoint
  explicit ReleaseShapes(const std::filesystem::path& folder, WeightConversion conversion = WeightConversion::kNone);

  bool has(const std::string& name) const override;
  /// @throws Error kCheckpoint naming a module that is not read
  LinearWeight linear(const std::string& name, std::int64_t out_features, std::int64_t in_features,
                      bool has_bias) override;

 private:
  ModuleParts parts_of(const std::string& module) const;

  Checkpoint checkpoint_;
  std::map<std::string_view, const Checkpoint::Entry*> by_name_;
  std::map<std::string, TensorView> factors_;  // of modules, those that their inputs are multiplied by
};

}  // namespace treble
