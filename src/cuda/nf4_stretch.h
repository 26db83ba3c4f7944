#pragma once

#include <cstdint>

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

/// Several of them, one kernel's work.
struct Nf4Stretches {
  static constexpr int kMost = 4;  // projections that read one input
  Nf4Stretch stretches[kMost];
  int first_block[kMost + 1];  // of the grid
  int count;
};

}  // namespace treble::cuda
