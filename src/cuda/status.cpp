#include "cuda/status.h"

#include <fmt/format.h>
#include <treble/error.h>

namespace treble::cuda {
namespace {

bool has_driver() {
  int version = 0;  // what the runtime reports where there is none
  return cudaDriverGetVersion(&version) == cudaSuccess && version > 0;
}

/// What the user can do about it.
std::string_view advice(cudaError_t status) {
  switch (status) {
    case cudaErrorNoDevice:
      return "this machine shows no NVIDIA GPU; use --device cpu";
    case cudaErrorInsufficientDriver:
      if (!has_driver()) return "this machine has no NVIDIA driver; install one, or use --device cpu";
      [[fallthrough]];
    case cudaErrorSystemDriverMismatch:
    case cudaErrorUnsupportedPtxVersion:
      return "the driver is older than the CUDA version that this program was built with; install a newer driver, or "
             "use --device cpu";
    case cudaErrorNoKernelImageForDevice:
      return "the GPU is older than compute capability 8.0; use --device cpu";
    case cudaErrorDevicesUnavailable:
      return "another process holds the GPU for itself; wait for it, or use another --device";
    case cudaErrorMemoryAllocation:
      return "its memory is full; end what else uses it, lower --pass-tokens, or use another --device";
    default:
      return "the device's state may be lost; start the program again";
  }
}

}  // namespace

void check(cudaError_t status, std::string_view what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // so that the next call does not report it again
  throw Error(ErrorCode::kDevice, fmt::format("cuda: {}: {}; {}", what, cudaGetErrorString(status), advice(status)));
}

void check(cublasStatus_t status, std::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const bool is_full = status == CUBLAS_STATUS_ALLOC_FAILED || status == CUBLAS_STATUS_NOT_INITIALIZED;
  throw Error(ErrorCode::kDevice,
              fmt::format("cuda: {}: cuBLASLt says {}; {}", what, cublasLtGetStatusString(status),
                          is_full ? "is the device's memory full?" : "does its version fit the driver?"));
}

}  // namespace treble::cuda
