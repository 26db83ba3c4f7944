#pragma once

#include <array>
#include <cstdint>

#include "quant/int8.h"
#include "quant/nf4.h"
#include "tensor/tensor_view.h"

namespace treble {

/// How a Linear's weight is stored. Decided per tensor when a release is read.
enum class WeightFormat {
  kDense,  ///< plain [out_features, in_features] in bf16
  kNf4,    ///< 4-bit codes of bitsandbytes: nf4.h
  kInt8,   ///< 8-bit codes, inputs quantised too: int8.h
};

/// One Linear layer, y = x W^T + bias, with its weight as it lies in the release (or on the device).
struct LinearWeight {
  WeightFormat format = WeightFormat::kDense;
  TensorView weight;  ///< kDense: [out_features, in_features] bf16, rows contiguous; kNf4: [bytes] u8;
                      ///< kInt8: [out_features, in_features] i8, rows contiguous
  TensorView bias;    ///< [out_features] bf16, of kInt8 f32; or empty
  Nf4 nf4;            ///< of kNf4
  Int8 int8;          ///< of kInt8

  std::int64_t out_features() const { return format == WeightFormat::kNf4 ? nf4.out_features : weight.size(0); }
  std::int64_t in_features() const { return format == WeightFormat::kNf4 ? nf4.in_features : weight.size(1); }
  /// Everything that lies in memory, for a backend that has its own; views that the format does not use are empty.
  std::array<TensorView*, 8> tensors() {
    return {&weight,
            &bias,
            &nf4.code_values,
            &nf4.absmax,
            &nf4.nested_values,
            &nf4.nested_absmax,
            &int8.row_scale,
            &int8.input_factor};
  }
  /// Outputs [begin, end) alone.
  LinearWeight rows(std::int64_t begin, std::int64_t end) const;
};

}  // namespace treble
