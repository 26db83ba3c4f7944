#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/choose_wgmma_int8_tile.h"

namespace treble::cuda {

/// An input in int8: token t, feature k stands for codes[t, k] * scale[t].
struct Int8Operands {
  const std::int8_t* codes;   // [T, in_features], every row at a multiple of 16 bytes
  std::int64_t codes_stride;  // bytes
  const float* scale;         // [T]
};

/// A matrix in int8: row n, feature k stands for codes[n, k] * row_scale[n].
struct Int8Weight {
  const std::int8_t* codes;  // [N, in_features], rows next to each other, 16-byte aligned
  const float* row_scale;    // [N]
  const float* bias;         // [N], or nullptr
};

/// out [T, out_features] = bf16((sum * input.scale[t]) * weight.row_scale[n] + bias[n]), or with `adds`
/// bf16((...) + out), in fp32 from the rounded sum on, every step rounded. Sums of products of codes are exact.
struct Int8Product {
  std::int64_t num_tokens, out_features, in_features;  // out_features and in_features multiples of 16
  Int8Operands input;
  Int8Weight weight;
  void* out;  // bf16, every row at a multiple of 16 bytes
  std::int64_t out_stride;
  bool adds = false;
};

/// Runs on compute capability 9.0 only. The digits of a token do not depend on the tile or on other tokens.
/// @param tile     any gives the same digits; choose_wgmma_int8_tile finds a fast one
/// @param num_sms  multiprocessors of the device
/// @throws Error kDevice
void linear_int8_wgmma_sm90(const Int8Product& product, WgmmaInt8Tile tile, int num_sms, cudaStream_t stream);

/// out [T, out_features] = silu(gate) up, both as an Int8Product rounds them; the silu is rounded, then the product.
struct Int8SwigluProduct {
  std::int64_t num_tokens, out_features, in_features;  // out_features a multiple of 8, in_features of 16
  Int8Operands input;
  Int8Weight gate;
  Int8Weight up;  // its codes at a higher address, less than 2^40 bytes away
  void* out;      // bf16, every row at a multiple of 16 bytes
  std::int64_t out_stride;
};
void swiglu_int8_wgmma_sm90(const Int8SwigluProduct& product, WgmmaInt8Tile tile, int num_sms, cudaStream_t stream);

}  // namespace treble::cuda
