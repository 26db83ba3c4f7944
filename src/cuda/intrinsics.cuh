#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "tensor/bfloat16.h"

// What kernels ask of the hardware, each in one place: rounding to 16 bits, data exchange inside a warp, asynchronous
// copies, matrix products of one warp. Fragment layouts: PTX ISA, "Matrix fragments for mma.m16n8k16".

namespace treble::cuda {

constexpr int kWarpSize = 32;

__device__ __forceinline__ int lane_id() {
  return static_cast<int>(threadIdx.x) % kWarpSize;
}
__device__ __forceinline__ int warp_id() {
  return static_cast<int>(threadIdx.x) / kWarpSize;
}

/// The dynamic shared memory of a block, 16-byte aligned.
__device__ __forceinline__ unsigned char* dynamic_shared() {
  extern __shared__ __align__(16) unsigned char memory[];
  return memory;
}

__device__ __forceinline__ void sync_block() {
  __syncthreads();
}
__device__ __forceinline__ void sync_warp() {
  __syncwarp();
}

/// Returns when the kernels before this one have ended and what they wrote is seen. Kernels that start early
/// (LaunchShape) call it first, and let the next ones start meanwhile.
__device__ __forceinline__ void wait_for_earlier_kernels() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

template <typename T>
__device__ __forceinline__ T shuffle(T x, int lane) {
  return __shfl_sync(0xffffffffu, x, lane);
}
template <typename T>
__device__ __forceinline__ T shuffle_xor(T x, int mask) {
  return __shfl_xor_sync(0xffffffffu, x, mask);
}
template <typename T>
__device__ __forceinline__ T shuffle_up(T x, int distance) {
  return __shfl_up_sync(0xffffffffu, x, static_cast<unsigned>(distance));
}

__device__ __forceinline__ float widen(float x) {
  return x;
}
__device__ __forceinline__ float widen(bfloat16 x) {
  return __uint_as_float(static_cast<std::uint32_t>(x.bits) << 16);
}

__device__ __forceinline__ std::uint32_t bits_of(float x) {
  return __float_as_uint(x);
}
__device__ __forceinline__ float float_of(std::uint32_t bits) {
  return __uint_as_float(bits);
}

/// Each rounded by itself: the compiler makes no fused step of them, which would give other digits.
__device__ __forceinline__ float add_rounded(float x, float y) {
  return __fadd_rn(x, y);
}
__device__ __forceinline__ float multiply_rounded(float x, float y) {
  return __fmul_rn(x, y);
}
/// x * y + z, rounded once.
__device__ __forceinline__ float multiply_add(float x, float y, float z) {
  return __fmaf_rn(x, y, z);
}

/// |x| or |y|, the larger one; NaN if one of them is.
__device__ __forceinline__ float larger_magnitude(float x, float y) {
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(fabsf(x)), "f"(fabsf(y)));
  return larger;
}

/// exp(x) within 2 + |x| / 16 units in the last place of fp32; 0 below -103, infinity above 88.
__device__ __forceinline__ float exp_approximately(float x) {
  return __expf(x);
}
/// x / y within 2 units in the last place. @param y  not beyond 2^126 but for infinity, which gives 0
__device__ __forceinline__ float divide_approximately(float x, float y) {
  float reciprocal;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(y));
  return x * reciprocal;
}
/// 1 / sqrt(x) within 2 units in the last place.
__device__ __forceinline__ float inverse_sqrt(float x) {
  return rsqrtf(x);
}

/// Two values rounded to bf16, nearest even; `low` in the lower half.
__device__ __forceinline__ std::uint32_t pack_bf16(float low, float high) {
  std::uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}
__device__ __forceinline__ float low_bf16(std::uint32_t packed) {
  return __uint_as_float(packed << 16);
}
__device__ __forceinline__ float high_bf16(std::uint32_t packed) {
  return __uint_as_float(packed & 0xffff0000u);
}

/// Two values rounded to IEEE half, nearest even; those beyond its range become its largest ones.
__device__ __forceinline__ std::uint32_t pack_half(float low, float high) {
  std::uint32_t packed;
  asm("cvt.rn.satfinite.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}
__device__ __forceinline__ float low_half(std::uint32_t packed) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(static_cast<std::uint16_t>(packed)));
  return x;
}
__device__ __forceinline__ float high_half(std::uint32_t packed) {
  return low_half(packed >> 16);
}

/// x rounded to T, nearest even.
template <typename T>
__device__ __forceinline__ T narrow(float x);
template <>
__device__ __forceinline__ float narrow<float>(float x) {
  return x;
}
template <>
__device__ __forceinline__ bfloat16 narrow<bfloat16>(float x) {
  return {static_cast<std::uint16_t>(pack_bf16(x, 0))};
}

/// What x becomes when it is stored as T and loaded again.
template <typename T>
__device__ __forceinline__ float round_to(float x) {
  return widen(narrow<T>(x));
}

/// Four 8 x 8 matrices of 16-bit elements; lanes 8 m to 8 m + 7 give the addresses of the rows of matrix m.
__device__ __forceinline__ void load_matrices(std::uint32_t (&fragment)[4], const void* row) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(address)
               : "memory");
}

/// The same, each matrix transposed.
__device__ __forceinline__ void load_matrices_transposed(std::uint32_t (&fragment)[4], const void* row) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(address)
               : "memory");
}

/// d [16, 8] += a [16, 16] b [16, 8], bf16 operands and fp32 sums.
__device__ __forceinline__ void multiply_bf16(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                              std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// The same with IEEE half operands.
__device__ __forceinline__ void multiply_half(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                              std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// d [16, 8] += a [16, 32] b [32, 8], signed 8-bit operands and exact sums. A row of a and a column of b are 32 bytes,
/// as with 16-bit operands: load_matrices() brings them alike.
__device__ __forceinline__ void multiply_int8(int (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                              std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Starts copying 16 bytes to shared memory; zeros where `is_there` does not hold, and then nothing is read.
__device__ __forceinline__ void copy_async(void* shared, const void* global, bool is_there = true) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  const int num_bytes = is_there ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(address), "l"(__cvta_generic_to_global(global)), "r"(num_bytes)
               : "memory");
}

/// Ends a group of copies.
__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

/// Waits until at most `kPending` of this thread's latest groups are not done.
template <int kPending>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace treble::cuda
