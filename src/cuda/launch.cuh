#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string_view>
#include <utility>

#include "cuda/launch_shape.h"
#include "cuda/status.h"

namespace treble::cuda {

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
  cudaLaunchAttribute cluster{};
  if (shape.cluster_size > 1) {
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {static_cast<unsigned>(shape.cluster_size), 1, 1};
    config.attrs = &cluster;
    config.numAttrs = 1;
  }
  check(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...), name);
}

}  // namespace treble::cuda
