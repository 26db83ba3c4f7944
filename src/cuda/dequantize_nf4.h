#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "quant/linear_weight.h"
#include "tensor/bfloat16.h"

namespace treble::cuda {

/// Elements [first_element, first_element + num_elements) of a flattened NF4 weight (quant/nf4.h), all in the device's
/// memory, and where they go as bf16, next to each other. A weight whose own type is f16 is rounded to that first; one
/// of fp32 to bf16 alone.
struct Nf4Stretch {
  const std::uint8_t* codes;  // of element 0
  const float* code_values;   // [16]
  const void* absmax;         // f32, or u8 where there are nested_values
  const float* nested_values;
  const float* nested_absmax;
  float nested_offset;
  int block_shift, nested_block_shift;  // binary logarithms of sizes
  bool is_half;
  std::int64_t first_element, num_elements;
  bfloat16* out;
};

/// Rows [begin, end) of an NF4 weight that was placed on the device.
/// @param out  [end - begin, in_features] bf16
Nf4Stretch nf4_stretch(const LinearWeight& weight, std::int64_t begin, std::int64_t end, bfloat16* out);

/// Writes them all. @throws Error kDevice
void dequantize_nf4(std::span<const Nf4Stretch> stretches, cudaStream_t stream);

}  // namespace treble::cuda
