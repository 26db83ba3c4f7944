#pragma once

#include <treble/engine.h>

#include <memory>
#include <optional>
#include <vector>

#include "model/weights.h"

namespace treble {

/// Quantises the plain Linears of another source one by one as they are asked for, and lets that source drop what they
/// were made from: of the plain weights no more than one Linear is held.
class QuantizingSource final : public WeightSource {
 public:
  /// @param conversion  not kNone
  QuantizingSource(WeightSource& plain, WeightConversion conversion) : plain_(plain), conversion_(conversion) {}

  TensorView tensor(const std::string& name, std::initializer_list<std::int64_t> shape) override {
    return plain_.tensor(name, shape);
  }
  float scalar(const std::string& name) override { return plain_.scalar(name); }
  bool has(const std::string& name) const override { return plain_.has(name); }
  std::optional<FileRange> file_range(const TensorView& tensor) const override { return plain_.file_range(tensor); }
  /// @throws Error kArgument if the other source's Linear is quantised already; kCheckpoint if a weight is not finite
  LinearWeight linear(const std::string& name, std::int64_t out_features, std::int64_t in_features,
                      bool has_bias) override;

  /// What the quantised Linears point to.
  const std::vector<std::shared_ptr<const void>>& storage() const { return storage_; }

 private:
  WeightSource& plain_;
  const WeightConversion conversion_;
  std::vector<std::shared_ptr<const void>> storage_;
};

}  // namespace treble
