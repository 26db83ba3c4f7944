#pragma once

#include <cuda_runtime_api.h>

#include <string_view>
#include <tuple>
#include <utility>

#include "cuda/launch_shape.h"
#include "emulator.h"

namespace treble::cuda {

/// The emulator's form of src/cuda/launch.cuh: the kernel has run when this returns.
template <typename... Parameters, typename... Arguments>
void launch(std::string_view, cudaStream_t, const LaunchShape& shape, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
  const std::tuple<Parameters...> values(std::forward<Arguments>(arguments)...);
  emulator::run(shape.grid, shape.num_threads, shape.shared_bytes, [&] { std::apply(kernel, values); });
}

}  // namespace treble::cuda
