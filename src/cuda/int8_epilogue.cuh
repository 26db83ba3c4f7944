#pragma once

#include "cuda/int8_product.h"
#include "cuda/rows.cuh"

// What becomes of sums of code products, alike in every kernel: int8_product.h has the order of the roundings.

namespace treble::cuda {

/// A product's scales, bias and output in a kernel.
template <typename Out>
struct Int8Epilogue {
  const float *token_scale, *row_scale, *bias;
  Rows<Out> out;
  bool adds;

  __device__ __forceinline__ void store(std::int64_t token, std::int64_t output, int sum) const {
    float y = multiply_rounded(multiply_rounded(static_cast<float>(sum), token_scale[token]), row_scale[output]);
    if (bias) y = add_rounded(y, bias[output]);
    Out* to = out.row(token) + output;
    if (adds) y = add_rounded(widen(*to), y);
    *to = narrow<Out>(y);
  }
};

template <typename Out>
Int8Epilogue<Out> epilogue_of(const Int8Product& product) {
  return {product.input.scale, product.weight.row_scale, product.weight.bias,
          Rows<Out>{static_cast<Out*>(product.out), product.out_stride}, product.adds};
}

}  // namespace treble::cuda
