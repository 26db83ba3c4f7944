#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "emulator.h"
#include "tensor/bfloat16.h"

// The emulator's form of src/cuda/intrinsics.cuh: the same functions, by definition instead of by instruction.

// The threads of a block run on one thread of the processor, one block after the other.
#undef __shared__
#define __shared__ static
#undef __launch_bounds__
#define __launch_bounds__(...)

namespace treble::cuda {

using std::max;
using std::min;

constexpr int kWarpSize = 32;

inline int lane_id() {
  return static_cast<int>(threadIdx.x) % kWarpSize;
}
inline int warp_id() {
  return static_cast<int>(threadIdx.x) / kWarpSize;
}

inline unsigned char* dynamic_shared() {
  return emulator::dynamic_shared();
}
inline void sync_block() {
  emulator::sync_block();
}
inline void sync_warp() {
  emulator::sync_warp();
}

inline void wait_for_earlier_kernels() {}

template <typename T>
T shuffle(T x, int lane) {
  return emulator::slot<T>(emulator::exchange(x), lane % kWarpSize);
}
template <typename T>
T shuffle_xor(T x, int mask) {
  return emulator::slot<T>(emulator::exchange(x), lane_id() ^ mask);
}
template <typename T>
T shuffle_up(T x, int distance) {
  const emulator::Slots& slots = emulator::exchange(x);
  return lane_id() >= distance ? emulator::slot<T>(slots, lane_id() - distance) : x;
}

inline float widen(float x) {
  return x;
}
inline float widen(bfloat16 x) {
  return to_float(x);
}

inline std::uint32_t bits_of(float x) {
  return std::bit_cast<std::uint32_t>(x);
}
inline float float_of(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

inline float add_rounded(float x, float y) {
  return x + y;
}
inline float multiply_rounded(float x, float y) {
  return x * y;
}
inline float multiply_add(float x, float y, float z) {
  return std::fma(x, y, z);
}

inline float larger_magnitude(float x, float y) {
  x = std::abs(x), y = std::abs(y);
  return x < y || y != y ? y : x;
}

inline float exp_approximately(float x) {
  return std::exp(x);
}
inline float divide_approximately(float x, float y) {
  return x * (1.0f / y);
}
inline float inverse_sqrt(float x) {
  return 1.0f / std::sqrt(x);
}

inline std::uint32_t pack(std::uint16_t low, std::uint16_t high) {
  return static_cast<std::uint32_t>(high) << 16 | low;
}
inline std::uint32_t pack_bf16(float low, float high) {
  return pack(to_bfloat16(low).bits, to_bfloat16(high).bits);
}
inline float low_bf16(std::uint32_t packed) {
  return to_float(bfloat16{static_cast<std::uint16_t>(packed)});
}
inline float high_bf16(std::uint32_t packed) {
  return to_float(bfloat16{static_cast<std::uint16_t>(packed >> 16)});
}

inline std::uint32_t pack_half(float low, float high) {
  const auto round = [](float x) {
    constexpr float kLargest = 65504;
    return std::bit_cast<std::uint16_t>(static_cast<_Float16>(std::clamp(x, -kLargest, kLargest)));
  };
  return pack(round(low), round(high));
}
inline float low_half(std::uint32_t packed) {
  return static_cast<float>(std::bit_cast<_Float16>(static_cast<std::uint16_t>(packed)));
}
inline float high_half(std::uint32_t packed) {
  return low_half(packed >> 16);
}

template <typename T>
T narrow(float x);
template <>
inline float narrow<float>(float x) {
  return x;
}
template <>
inline bfloat16 narrow<bfloat16>(float x) {
  return to_bfloat16(x);
}
template <typename T>
float round_to(float x) {
  return widen(narrow<T>(x));
}

inline void load_matrices(std::uint32_t (&fragment)[4], const void* row) {
  const emulator::Slots& slots = emulator::exchange(row);
  for (int m = 0; m < 4; ++m) {
    const auto* from = emulator::slot<const std::uint32_t*>(slots, 8 * m + lane_id() / 4);
    fragment[m] = from[lane_id() % 4];
  }
}

inline void load_matrices_transposed(std::uint32_t (&fragment)[4], const void* row) {
  const emulator::Slots& slots = emulator::exchange(row);
  for (int m = 0; m < 4; ++m) {
    const auto element = [&](int i) {
      return emulator::slot<const std::uint16_t*>(slots, 8 * m + lane_id() % 4 * 2 + i)[lane_id() / 4];
    };
    fragment[m] = pack(element(0), element(1));
  }
}

namespace emulator {

struct Operands {
  std::uint32_t a[4], b[2];
};

/// @param low, high  what the halves of 32 bits stand for
template <typename Low, typename High>
void multiply(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1, const Low& low,
              const High& high) {
  const Slots& slots = exchange(Operands{{a[0], a[1], a[2], a[3]}, {b0, b1}});
  const auto part = [&](std::uint32_t packed, int k) { return k % 2 == 0 ? low(packed) : high(packed); };
  for (int i = 0; i < 4; ++i) {
    const int row = lane_id() / 4 + i / 2 * 8, column = lane_id() % 4 * 2 + i % 2;
    float sum = 0;
    for (int k = 0; k < 16; ++k) {
      const auto of_a = slot<Operands>(slots, row % 8 * 4 + k % 8 / 2),
                 of_b = slot<Operands>(slots, column * 4 + k % 8 / 2);
      sum += part(of_a.a[row / 8 + k / 8 * 2], k) * part(of_b.b[k / 8], k);
    }
    d[i] += sum;
  }
}

}  // namespace emulator

inline void multiply_bf16(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  emulator::multiply(d, a, b0, b1, low_bf16, high_bf16);
}
inline void multiply_half(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  emulator::multiply(d, a, b0, b1, low_half, high_half);
}

inline void multiply_int8(int (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  using emulator::Operands;
  const emulator::Slots& slots = emulator::exchange(Operands{{a[0], a[1], a[2], a[3]}, {b0, b1}});
  const auto code = [](std::uint32_t packed, int k) { return static_cast<std::int8_t>(packed >> 8 * (k % 4)); };
  for (int i = 0; i < 4; ++i) {
    const int row = lane_id() / 4 + i / 2 * 8, column = lane_id() % 4 * 2 + i % 2;
    for (int k = 0; k < 32; ++k) {
      const auto of_a = emulator::slot<Operands>(slots, row % 8 * 4 + k % 16 / 4),
                 of_b = emulator::slot<Operands>(slots, column * 4 + k % 16 / 4);
      d[i] += code(of_a.a[row / 8 + k / 16 * 2], k) * code(of_b.b[k / 16], k);
    }
  }
}

inline void copy_async(void* shared, const void* global, bool is_there = true) {
  emulator::copy_async(shared, global, is_there);
}
inline void commit_copies() {
  emulator::commit_copies();
}
template <int kPending>
void wait_for_copies() {
  emulator::wait_for_copies(kPending);
}

}  // namespace treble::cuda
