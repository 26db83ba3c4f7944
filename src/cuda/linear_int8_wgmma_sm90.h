#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/choose_wgmma_int8_tile.h"
#include "cuda/int8_product.h"

namespace treble::cuda {

/// An Int8Product with bf16 output; out_features and in_features are multiples of 16, and rows of codes and of the
/// output start at multiples of 16 bytes. Runs on compute capability 9.0 only. The digits of a token do not depend on
/// the tile or on other tokens.
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
