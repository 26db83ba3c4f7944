#pragma once

#include <cstddef>

// What the backend takes of the device beside activations; the plan of its memory counts with the same figures.

namespace treble::cuda {

inline constexpr std::size_t kWeightAlignment = 256;                     // bytes
inline constexpr std::size_t kWeightChunkBytes = std::size_t{64} << 20;  // weights grow by
inline constexpr std::size_t kProductWorkspaceBytes = std::size_t{32}
                                                      << 20;  // cuBLASLt's: what NVIDIA advises for Hopper
// What the driver takes for the process, and for kernels, ours and cuBLASLt's, when each is first started. Allowances,
// not measurements.
inline constexpr std::size_t kContextBytes = std::size_t{640} << 20;
inline constexpr std::size_t kKernelBytes = std::size_t{256} << 20;

// Rows of an NF4 weight that are bf16 at once: both of SwiGLU's weights at 27B are 340 MiB.
inline constexpr std::size_t kNf4RowBytes = std::size_t{384} << 20;

/// What is left for weights, activations and scratch of so many bytes that a process may take of a device.
constexpr std::size_t room_within(std::size_t limit_bytes) {
  constexpr std::size_t kIndexBytes = std::size_t{16} << 20;  // host_staging.h
  constexpr std::size_t kOwnBytes = kContextBytes + kKernelBytes + kProductWorkspaceBytes + kIndexBytes;
  return limit_bytes > kOwnBytes ? limit_bytes - kOwnBytes : 0;
}

constexpr std::size_t round_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace treble::cuda
