#pragma once

#include <string>

#include "model/weights.h"
#include "tensor/counting_memory.h"

namespace treble {

/// Tensors of the right shapes behind which there is no memory, for a model that is only planned with.
class ShapeSource final : public WeightSource {
 public:
  /// @param has_vision  whether the release has the vision tower's tensors
  explicit ShapeSource(bool has_vision) : has_vision_(has_vision) {}

  TensorView tensor(const std::string&, std::initializer_list<std::int64_t> shape) override {
    void* const nowhere = memory_.allocate(1);
    return TensorView(nowhere, DType::kBF16, shape.begin(), static_cast<int>(shape.size()));
  }
  float scalar(const std::string&) override { return 0; }
  bool has(const std::string&) const override { return has_vision_; }

 private:
  bool has_vision_;
  CountingMemory memory_;
};

}  // namespace treble
