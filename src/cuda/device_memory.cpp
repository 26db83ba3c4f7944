#include "cuda/device_memory.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <treble/error.h>

#include "cuda/status.h"

namespace treble::cuda {

void* DeviceMemory::allocate(std::size_t num_bytes) {
  void* block = nullptr;
  const cudaError_t status = cudaMalloc(&block, num_bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t free_bytes = 0, total_bytes = 0;
    check(cudaMemGetInfo(&free_bytes, &total_bytes), "reading how much memory is free");
    throw Error(
        ErrorCode::kDevice,
        fmt::format("cuda: no {} MiB of device memory left, {} of {} MiB are free; send fewer or shorter records "
                    "at once, or a smaller model",
                    num_bytes >> 20, free_bytes >> 20, total_bytes >> 20));
  }
  check(status, "taking device memory");
  return block;
}

void DeviceMemory::free(void* block, std::size_t) noexcept {
  cudaFree(block);  // waits for what still reads it
}

}  // namespace treble::cuda
