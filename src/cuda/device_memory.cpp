#include "cuda/device_memory.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <treble/error.h>

#include "cuda/current_device.h"
#include "cuda/handles.h"
#include "cuda/status.h"

namespace treble::cuda {

void* DeviceMemory::allocate(std::size_t num_bytes) {
  const CurrentDevice current(device_);
  void* block = nullptr;
  const cudaError_t status = cudaMalloc(&block, num_bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t free_bytes = 0, total_bytes = 0;
    check(cudaMemGetInfo(&free_bytes, &total_bytes), "reading how much memory is free");
    throw Error(
        ErrorCode::kDevice,
        fmt::format("cuda: no {} MiB of device memory left, {} of {} MiB are free; end what else uses the device, "
                    "lower --pass-tokens, or use a smaller model",
                    num_bytes >> 20, free_bytes >> 20, total_bytes >> 20));
  }
  check(status, "taking device memory");
  allocated_bytes_ += num_bytes;
  return block;
}

void DeviceMemory::free(void* block, std::size_t num_bytes) noexcept {
  const CurrentDevice current(device_);
  allocated_bytes_ -= num_bytes;
  cudaFree(block);  // waits for what still reads it
}

PinnedMemory make_pinned(std::size_t num_bytes) {
  void* memory = nullptr;
  const cudaError_t status = cudaHostAlloc(&memory, num_bytes, cudaHostAllocMapped);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw Error(ErrorCode::kDevice,
                fmt::format("cuda: the host gives no {} MiB of pinned memory; free some, raise what a container may "
                            "take, or move the vocabulary tables with --embeddings device",
                            num_bytes >> 20));
  }
  check(status, "taking pinned host memory");
  return PinnedMemory(memory);
}

}  // namespace treble::cuda
