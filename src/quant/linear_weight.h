#pragma once

#include <cstdint>

#include "tensor/tensor_view.h"

namespace treble {

/// How a Linear's weight is stored. Decided per tensor when a release is read.
enum class WeightFormat {
  kDense,  ///< plain [out_features, in_features] in bf16
};

/// One Linear layer, y = x W^T + bias, with its weight as it lies in the release (or on the device).
struct LinearWeight {
  WeightFormat format = WeightFormat::kDense;
  TensorView weight;  ///< [out_features, in_features] bf16, rows contiguous
  TensorView bias;    ///< [out_features] bf16, or empty

  std::int64_t out_features() const { return weight.size(0); }
  std::int64_t in_features() const { return weight.size(1); }
  /// Outputs [begin, end) alone.
  LinearWeight rows(std::int64_t begin, std::int64_t end) const;
};

}  // namespace treble
