#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "cuda/launch_shape.h"
#include "cuda/status.h"

namespace treble::cuda {

/// Whether the current device knows programmatic dependent launch.
inline bool kernels_can_start_early() {
  constexpr int kHopper = 9;
  int device = 0, major = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess && major >= kHopper;
}

/// Starts a kernel; nothing to do where the grid is empty. @throws Error kDevice naming the kernel
template <typename... Parameters, typename... Arguments>
void launch(std::string_view name, cudaStream_t stream, const LaunchShape& shape, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
  if (shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0) return;
  constexpr std::size_t kWithoutAsking = 48 << 10;  // bytes of dynamic shared memory
  if (shape.shared_bytes > kWithoutAsking) {
    check(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shape.shared_bytes)),
        name);
  }
  cudaLaunchConfig_t config{};
  config.gridDim = shape.grid;
  config.blockDim = dim3(static_cast<unsigned>(shape.num_threads));
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  std::array<cudaLaunchAttribute, 2> attributes{};
  config.attrs = attributes.data();
  if (shape.cluster_size > 1) {
    cudaLaunchAttribute& cluster = attributes[config.numAttrs++];
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {static_cast<unsigned>(shape.cluster_size), 1, 1};
  }
  if (shape.starts_early && kernels_can_start_early()) {
    cudaLaunchAttribute& early = attributes[config.numAttrs++];
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
  }
  check(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...), name);
}

}  // namespace treble::cuda
