#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

// Runs CUDA kernels on the processor, so that their results can be tested on a machine without a GPU. The kernels are
// compiled as plain C++ against this folder's intrinsics.cuh and launch.cuh, which stand in for those of src/cuda; the
// runtime and cuBLASLt calls of the host code are answered by runtime.cpp and cublas_lt.cpp.
//
// The threads of a block are fibers of one thread of the processor. A fiber runs until it waits for others: at a
// barrier of its block or warp, or at an operation of a whole warp. Every second launch takes the threads of a block in
// reverse order, so that results that need a barrier which is not there come out wrong. An asynchronous copy arrives
// when it is waited for, not before. A barrier that not all threads reach ends the program with a message.

namespace treble::cuda::emulator {

/// Runs `thread` once for every thread of every block.
void run(dim3 grid, int num_threads, std::size_t shared_bytes, const std::function<void()>& thread);

/// Of the running block.
unsigned char* dynamic_shared();
void sync_block();
void sync_warp();

/// Of the running thread; copies are done in groups by wait.
void copy_async(void* shared, const void* global, bool is_there);
void commit_copies();
void wait_for_copies(int num_pending);

/// Memory of the running warp that all its lanes write, each its own slot, before any of them reads.
constexpr std::size_t kSlotBytes = 32;
using Slots = std::array<std::array<std::byte, kSlotBytes>, 32>;
/// @return the slots as all lanes have written them; they stay until the next exchange but one
const Slots& exchange(const void* own, std::size_t num_bytes);

template <typename T>
const Slots& exchange(const T& own) {
  static_assert(sizeof(T) <= kSlotBytes);
  return exchange(&own, sizeof(T));
}

template <typename T>
T slot(const Slots& slots, int lane) {
  T value;
  std::memcpy(&value, slots[static_cast<std::size_t>(lane)].data(), sizeof(T));
  return value;
}

}  // namespace treble::cuda::emulator

/// What CUDA gives every thread.
inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;
