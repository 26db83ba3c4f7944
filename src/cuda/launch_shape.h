#pragma once

#include <vector_types.h>

#include <cstddef>
#include <cstdint>

#include "tensor/bfloat16.h"
#include "tensor/dtype.h"

namespace treble::cuda {

/// How a kernel is started.
struct LaunchShape {
  dim3 grid;
  int num_threads;
  std::size_t shared_bytes = 0;  // dynamic
  int cluster_size = 1;          // blocks along x that reach each other's shared memory; from compute capability 9.0 on
  // It may start while the kernel before it still runs: it calls wait_for_earlier_kernels() before it touches what
  // others write or read. Hides the start of a kernel behind the end of another, from compute capability 9.0 on.
  bool starts_early = false;
};

/// Of a kernel that starts early.
inline LaunchShape early(dim3 grid, int num_threads) {
  return {.grid = grid, .num_threads = num_threads, .starts_early = true};
}

/// Blocks for `count` items, so many in each.
inline unsigned blocks_for(std::int64_t count, std::int64_t per_block) {
  return static_cast<unsigned>((count + per_block - 1) / per_block);
}

/// Calls body with a value of the C++ type of a dtype, f32 or bf16.
template <typename Body>
void with_type(DType dtype, const Body& body) {
  if (dtype == DType::kBF16) {
    body(bfloat16{});
  } else {
    body(float{});
  }
}

}  // namespace treble::cuda
