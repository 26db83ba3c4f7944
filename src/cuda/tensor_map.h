#pragma once

#include <cuda.h>

#include <cstdint>
#include <span>

namespace treble::cuda {

/// How a tensor in device memory is cut into boxes that a kernel copies at once.
struct BoxedTensor {
  const void* data;  // 16-byte aligned
  struct Dimension {
    std::int64_t size;
    std::int64_t stride_bytes;  // a multiple of 16 below 2^40; of the innermost dimension not read
    int box;                    // 1 to 256 elements
  };
  std::span<const Dimension> dimensions;  // innermost first
  CUtensorMapSwizzle swizzle;             // of rows as wide as the box
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
};

/// The same as what the device's copy engine reads. What a box has beyond the tensor is zero, and is not stored.
/// @throws Error kDevice: the driver is too old; kInternal: sizes or addresses that no map can hold
CUtensorMap make_tensor_map(const BoxedTensor& tensor);

}  // namespace treble::cuda
