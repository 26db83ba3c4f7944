#pragma once

#include <cstdint>

#include "cuda/kernel_set.h"
#include "quant/linear_weight.h"
#include "tensor/dtype.h"

namespace treble::cuda {

enum class LinearKernel {
  kCublasLt,  ///< tensor cores through cuBLASLt; inputs in fp32 as three bf16 terms
  kFewRows,   ///< few fp32 rows, mma.sync, any size and alignment: linear_few_rows.cu
  kTiles,     ///< fp32 arithmetic, any size and alignment: linear_tiles.cu
};

struct LinearShape {
  DType input_dtype;
  std::int64_t num_tokens, out_features, in_features;
  bool is_aligned;  ///< every row of input, weight and output starts at a multiple of 16 bytes
};

LinearKernel choose_linear(const LinearShape& shape);

/// Products of 8-bit codes.
enum class Int8LinearKernel {
  kTiles,      ///< any size and alignment: linear_int8_tiles.cu
  kMmaSm80,    ///< tensor cores of compute capability 8.0 on: linear_int8_mma_sm80.cu
  kWgmmaSm90,  ///< Hopper's own: linear_int8_wgmma_sm90.cu
};

struct Int8LinearShape {
  DType out_dtype;
  std::int64_t out_features, in_features;
  bool is_aligned;      ///< every row of codes starts at a multiple of 16 bytes
  bool out_is_aligned;  ///< every row of the output too
};

/// @param compute_capability  10 times the major number, plus the minor one
Int8LinearKernel choose_int8_linear(const Int8LinearShape& shape, int compute_capability, KernelSet kernels);

/// Of products that choose_linear gives to tensor cores, with bf16 inputs.
enum class DenseKernel {
  kCublasLt,
  kWgmmaSm90,  ///< linear_wgmma_sm90.cu
};

struct DenseShape {
  DType out_dtype;
  std::int64_t num_tokens, out_features;
  bool has_bias;
};

/// @param compute_capability  10 times the major number, plus the minor one
/// @param num_sms  multiprocessors of the device
DenseKernel choose_dense(const DenseShape& shape, int compute_capability, int num_sms, KernelSet kernels);

enum class SwigluKernel {
  kSeparate,   ///< two products by choose_linear, then a pass over what they gave: linear.cu
  kWgmmaSm90,  ///< one kernel on Hopper's wgmma: linear_wgmma_sm90.cu
};

struct SwigluShape {
  DType dtype;   ///< of activations
  bool is_int8;  ///< 8-bit codes are multiplied, else bf16
  std::int64_t out_features, in_features;
  bool is_aligned;  ///< every row of input, weights and output starts at a multiple of 16 bytes
  bool is_ordered;  ///< up lies after gate, less than 2^40 bytes away: one tensor map reads both
};

/// Whether both are stored so, without a bias.
bool are_plain(WeightFormat format, const LinearWeight& gate, const LinearWeight& up);
/// Whether both are 8-bit codes, and the same codes of their input serve them.
bool read_same_codes(const LinearWeight& one, const LinearWeight& other);

/// @param compute_capability  10 times the major number, plus the minor one
SwigluKernel choose_swiglu(const SwigluShape& shape, int compute_capability, KernelSet kernels);

}  // namespace treble::cuda
