#pragma once

#include <cuda_runtime_api.h>

#include "cuda/int8_product.h"

namespace treble::cuda {

/// On tensor cores of compute capability 8.0 or more. in_features a multiple of 16; every row of codes starts at a
/// multiple of 16 bytes. Token counts and out_features of any size. @throws Error kDevice
void linear_int8_mma_sm80(const Int8Product& product, cudaStream_t stream);

/// Of any size and alignment, slowly. @throws Error kDevice
void linear_int8_tiles(const Int8Product& product, cudaStream_t stream);

}  // namespace treble::cuda
