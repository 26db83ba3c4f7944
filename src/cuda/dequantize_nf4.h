#pragma once

#include <cuda_runtime_api.h>

#include <span>

#include "cuda/nf4_stretch.h"
#include "quant/linear_weight.h"

namespace treble::cuda {

/// Rows [begin, end) of an NF4 weight that was placed on the device.
/// @param out  [end - begin, in_features] bf16
Nf4Stretch nf4_stretch(const LinearWeight& weight, std::int64_t begin, std::int64_t end, bfloat16* out);

/// Writes them all. @throws Error kDevice
void dequantize_nf4(std::span<const Nf4Stretch> stretches, cudaStream_t stream);

}  // namespace treble::cuda
