#pragma once

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <treble/error.h>

#include "cuda/status.h"

namespace treble::cuda {

/// A function of the driver, found at run time: the program starts where there is no driver.
/// @throws Error kDevice when the driver does not have it
template <typename Function>
Function find_driver_entry(const char* name) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  constexpr unsigned kCudaVersion = 12000;
  check(cudaGetDriverEntryPointByVersion(name, &entry, kCudaVersion, cudaEnableDefault, &result), name);
  if (result != cudaDriverEntryPointSuccess)
    throw Error(ErrorCode::kDevice, fmt::format("cuda: the driver has no {}; install a newer driver", name));
  return reinterpret_cast<Function>(entry);
}

}  // namespace treble::cuda
