#pragma once

#include <treble/engine.h>

#include <string>

#include "model/weights.h"
#include "tensor/counting_memory.h"

namespace treble {

/// Tensors of the right shapes and formats behind which there is no memory, for a model that is only planned with.
class ShapeSource : public WeightSource {
 public:
  /// @param has_vision  whether the release has the vision tower's tensors
  /// @param conversion  what plain Linears become while they are loaded
  explicit ShapeSource(bool has_vision, WeightConversion conversion = WeightConversion::kNone)
      : has_vision_(has_vision), conversion_(conversion) {}

  TensorView tensor(const std::string&, std::initializer_list<std::int64_t> shape) override {
    return nowhere(DType::kBF16, shape);
  }
  float scalar(const std::string&) override { return 0; }
  bool has(const std::string&) const override { return has_vision_; }
  LinearWeight linear(const std::string& name, std::int64_t out_features, std::int64_t in_features,
                      bool has_bias) override;

 protected:
  TensorView nowhere(DType dtype, std::initializer_list<std::int64_t> shape);
  /// @param rotation_group  of kInt8
  LinearWeight linear_of(WeightFormat format, std::int64_t out_features, std::int64_t in_features, bool has_bias,
                         std::int64_t rotation_group);
  /// A kNf4 one, with blocks and scales as those of `like`.
  LinearWeight nf4_linear_of(const Nf4& like, bool is_nested, std::int64_t out_features, std::int64_t in_features,
                             bool has_bias);

 private:
  bool has_vision_;
  WeightConversion conversion_;
  CountingMemory memory_;
};

}  // namespace treble
