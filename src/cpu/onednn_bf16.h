#pragma once

#include <map>
#include <tuple>

#include <oneapi/dnnl/dnnl.hpp>

#include "quant/linear_weight.h"
#include "tensor/tensor_view.h"

namespace treble::cpu {

/// Linears with bf16 inputs on a processor that multiplies bf16 itself (AVX512_BF16, AMX).
/// Weights are read as they lie; a primitive is made once for each shape.
class OnednnBf16 {
 public:
  /// Whether this processor has bf16 products, as oneDNN sees it.
  static bool is_supported();

  OnednnBf16();

  /// out = input weight^T + bias, summed in fp32 and rounded once.
  /// @param input   [T, in_features] bf16, rows may be strided
  /// @param weight  dense
  /// @param out     [T, out_features] bf16 or f32, rows may be strided
  void multiply(const TensorView& input, const LinearWeight& weight, const TensorView& out);

 private:
  // Tokens, outputs, features, the three row strides, has_bias, out is f32.
  using Key =
      std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool, bool>;

  const dnnl::matmul& primitive(const TensorView& input, const LinearWeight& weight, const TensorView& out);

  dnnl::engine engine_;
  dnnl::stream stream_;
  std::map<Key, dnnl::matmul> primitives_;
};

}  // namespace treble::cpu
