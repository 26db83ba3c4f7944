#include "cuda/tensor_map.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <array>

#include "cuda/driver_entry.h"

namespace treble::cuda {

CUtensorMap make_tensor_map(const BoxedTensor& tensor) {
  static const auto encode = find_driver_entry<decltype(&cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
  constexpr std::size_t kMostDimensions = 5;
  std::array<cuuint64_t, kMostDimensions> sizes{}, strides{};
  std::array<cuuint32_t, kMostDimensions> box{}, steps{};
  const std::size_t rank = tensor.dimensions.size();
  for (std::size_t i = 0; i < rank; ++i) {
    sizes[i] = static_cast<cuuint64_t>(tensor.dimensions[i].size);
    box[i] = static_cast<cuuint32_t>(tensor.dimensions[i].box);
    steps[i] = 1;
    if (i > 0) strides[i - 1] = static_cast<cuuint64_t>(tensor.dimensions[i].stride_bytes);
  }
  CUtensorMap map;
  const CUresult status = encode(&map, tensor.type, static_cast<cuuint32_t>(rank), const_cast<void*>(tensor.data),
                                 sizes.data(), strides.data(), box.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
                                 tensor.swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status == CUDA_SUCCESS) return map;
  throw Error(
      ErrorCode::kInternal,
      fmt::format("cuda: the driver makes no map of a tensor of {} dimensions, {} by {} in boxes of {} by {}: error "
                  "{}",
                  rank, sizes[0], sizes[1], box[0], box[1], static_cast<int>(status)));
}

}  // namespace treble::cuda
