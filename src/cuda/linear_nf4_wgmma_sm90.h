#pragma once

#include <cuda_runtime_api.h>

#include "cuda/choose_wgmma_nf4_tile.h"
#include "cuda/nf4_product.h"

namespace treble::cuda {

/// Run on compute capability 9.0 only. A token's digits do not depend on the tile or on other tokens, and are those of
/// linear_wgmma_sm90 and swiglu_wgmma_sm90 for the bf16 weights that the codes stand for.
/// @param tile     any gives the right answer; choose_wgmma_nf4_tile finds a fast one
/// @param num_sms  multiprocessors of the device
/// @throws Error kDevice
void linear_nf4_wgmma_sm90(const Nf4Product& product, WgmmaNf4Tile tile, int num_sms, cudaStream_t stream);
void swiglu_nf4_wgmma_sm90(const Nf4SwigluProduct& product, WgmmaNf4Tile tile, int num_sms, cudaStream_t stream);

}  // namespace treble::cuda
