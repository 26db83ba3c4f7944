#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/choose_wgmma_tile.h"

namespace treble::cuda {

/// out [T, out_features] = silu(input gate^T) * (input up^T), input [T, in_features]. All bf16; every row starts at a
/// multiple of 16 bytes. Both products are summed in fp32 and rounded, then the silu, then what they multiply to.
struct SwigluProduct {
  std::int64_t num_tokens, out_features, in_features;  // the latter two multiples of 8
  const void* input;
  std::int64_t input_stride;  // elements
  const void* gate;           // [out_features, in_features], rows next to each other
  const void* up;             // the same, at a higher address that is less than 2^40 bytes away
  void* out;
  std::int64_t out_stride;
};

/// Runs on compute capability 9.0 only. The digits of a token do not depend on the tile or on other tokens.
/// @param tile     any gives the right answer; choose_wgmma_tile finds a fast one
/// @param num_sms  multiprocessors of the device
/// @throws Error kDevice
void swiglu_wgmma_sm90(const SwigluProduct& product, WgmmaTile tile, int num_sms, cudaStream_t stream);

/// out [T, out_features] = input weight^T, or out += that: the fp32 sum of both, rounded once.
struct PlainProduct {
  std::int64_t num_tokens, out_features, in_features;  // out_features a multiple of 16, in_features of 8
  const void* input;
  std::int64_t input_stride;
  const void* weight;
  void* out;
  std::int64_t out_stride;
  bool adds = false;
};
void linear_wgmma_sm90(const PlainProduct& product, WgmmaTile tile, int num_sms, cudaStream_t stream);

}  // namespace treble::cuda
