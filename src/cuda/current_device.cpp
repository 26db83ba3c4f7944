#include "cuda/current_device.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace treble::cuda {
namespace {

/// Whether somebody in this process uses the device.
bool is_in_use(int device) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  constexpr unsigned kCudaVersion = 12000;
  const cudaError_t status =
      cudaGetDriverEntryPointByVersion("cuDevicePrimaryCtxGetState", &entry, kCudaVersion, cudaEnableDefault, &found);
  if (status != cudaSuccess || found != cudaDriverEntryPointSuccess) {
    cudaGetLastError();
    return false;
  }
  unsigned flags = 0;
  int is_active = 0;
  return reinterpret_cast<decltype(&cuDevicePrimaryCtxGetState)>(entry)(device, &flags, &is_active) == CUDA_SUCCESS &&
         is_active != 0;
}

}  // namespace

CurrentDevice::CurrentDevice(int device) noexcept {
  int before = 0;
  if (cudaGetDevice(&before) != cudaSuccess) cudaGetLastError();  // of this thread, which the next call reports again
  if (before == device) return;
  // To make a device current that nobody uses would give it a context: hundreds of MiB, and more where it is another
  // process's alone.
  if (is_in_use(before)) before_ = before;
  if (cudaSetDevice(device) != cudaSuccess) cudaGetLastError();
}

CurrentDevice::~CurrentDevice() {
  if (before_ >= 0 && cudaSetDevice(before_) != cudaSuccess) cudaGetLastError();
}

}  // namespace treble::cuda
