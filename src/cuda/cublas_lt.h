#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

#include "cuda/handles.h"
#include "tensor/tensor_view.h"
#include "tensor/workspace.h"

namespace treble::cuda {

/// out [T, out_features] = input [T, in_features] weight [out_features, in_features]^T (+ bias) (+ what out holds).
/// All addresses and row strides are multiples of 16 bytes.
struct Product {
  std::int64_t num_tokens, out_features, in_features;
  const void* input;  // bf16
  std::int64_t input_stride;
  const void* weight;  // bf16, rows next to each other
  const void* bias;    // [out_features] of out's dtype, or null
  void* out;
  std::int64_t out_stride;
  DType out_dtype;  // f32 or bf16
  bool adds;        // to what is there
};

/// Dense bf16 products with fp32 sums. The algorithm is chosen once for a shape and kept, so that equal calls give
/// equal digits.
class CublasLt {
 public:
  CublasLt(Memory& device_memory, cudaStream_t stream);
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  void multiply(const Product& product);

 private:
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, DType, bool, bool>;
  struct Plan {
    MatmulDesc desc;
    MatrixLayout weight, input, out;
    cublasLtMatmulAlgo_t algorithm;
  };

  static Key key_of(const Product& product);
  Plan make_plan(const Product& product) const;

  Memory& device_memory_;
  cudaStream_t stream_;
  CublasLtHandle handle_;
  void* workspace_;  // partial sums of split products
  std::map<Key, Plan> plans_;
};

}  // namespace treble::cuda
