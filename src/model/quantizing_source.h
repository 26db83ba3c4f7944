#pragma once

#include <treble/engine.h>

#include <memory>
#include <optional>
#include <vector>

#include "model/weights.h"

namespace treble {

/// How a plain Linear is stored after a conversion.
struct LinearEncoding {
  WeightFormat format = WeightFormat::kDense;
  std::int64_t rotation_group = 1;  ///< of kInt8
};
/// @param name  the Linear's canonical name
LinearEncoding encoding_of(const std::string& name, std::int64_t in_features, WeightConversion conversion);

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
  void release(const TensorView& tensor) override { plain_.release(tensor); }
  /// What was quantised here belongs to no other Linear.
  void release(const LinearWeight& linear) override;
  /// @throws Error kArgument if the other source's Linear is quantised already; kCheckpoint if a weight is not finite
  LinearWeight linear(const std::string& name, std::int64_t out_features, std::int64_t in_features,
                      bool has_bias) override;

  /// What the quantised Linears that were not released point to.
  const std::vector<std::shared_ptr<const void>>& storage() const { return storage_; }

 private:
  WeightSource& plain_;
  const WeightConversion conversion_;
  std::vector<std::shared_ptr<const void>> storage_;
};

}  // namespace treble
