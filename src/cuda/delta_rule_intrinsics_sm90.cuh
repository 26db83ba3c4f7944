#pragma once

#include <cstdint>

#include "cuda/intrinsics.cuh"
#include "cuda/tma_sm90.cuh"
#include "cuda/wgmma_sm90.cuh"

// What the gated delta rule asks of Hopper (compute capability 9.0a): barriers in shared memory that count arrivals and
// bytes, copies of whole ranges, matrix products of a warpgroup with left operand and sums in registers. PTX ISA:
// "mbarrier", "cp.async.bulk", "Asynchronous warpgroup level matrix instructions".

namespace treble::cuda::delta_rule {

/// A barrier in shared memory. A phase ends when so many threads have arrived and all announced bytes have come.
struct PhaseBarrier {
  std::uint64_t word;

  __device__ __forceinline__ void init(int num_arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&word)), "r"(num_arrivals) : "memory");
  }
  __device__ __forceinline__ void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&word)) : "memory");
  }
  /// Arrives, and announces bytes that copies will bring in this phase.
  __device__ __forceinline__ void arrive_and_expect(std::uint32_t num_bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&word)), "r"(num_bytes)
                 : "memory");
  }
  /// Arrives when this thread's copy_async so far are done.
  __device__ __forceinline__ void arrive_after_copies() {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(&word)) : "memory");
  }
  /// Waits for the end of the phase of this parity; phases count from 0.
  __device__ __forceinline__ void wait(std::uint32_t parity) {
    std::uint32_t done;
    do {
      asm volatile(
          "{\n.reg .pred done;\n"
          "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
          "selp.u32 %0, 1, 0, done;\n}"
          : "=r"(done)
          : "r"(shared_address(&word)), "r"(parity)
          : "memory");
    } while (done == 0);
  }
};

/// Starts copying a range to shared memory; its bytes arrive at the barrier.
/// @param num_bytes  a multiple of 16, as both addresses are
__device__ __forceinline__ void copy_range(void* shared, const void* global, std::uint32_t num_bytes,
                                           PhaseBarrier& barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(shared)),
               "l"(__cvta_generic_to_global(global)), "r"(num_bytes), "r"(shared_address(&barrier.word))
               : "memory");
}

/// Describes a right operand: rows of 128 bytes, whose 16-byte pieces are permuted as tile_at() says. Added to a
/// descriptor, 1 moves it by 16 bytes: along a row by less than 128 bytes, or by whole groups of eight rows.
/// @param shared  at a multiple of 1,024 bytes
/// @param tile_bytes  from 64 columns to the next 64: only of operands that are read transposed
__device__ __forceinline__ std::uint64_t describe_operand(const void* shared, int tile_bytes = 16) {
  constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62;
  constexpr std::uint64_t kEightRows = std::uint64_t{1024 >> 4} << 32;
  return kSwizzle128 | kEightRows | static_cast<std::uint64_t>(tile_bytes >> 4) << 16 |
         (shared_address(shared) & 0x3ffffu) >> 4;
}

// A warp's 16 rows of sums and of left operands lie as in mma.sync: d[4 n] to d[4 n + 3] are the sums of columns 8 n to
// 8 n + 7.

/// d [64, 64] = a [64, 16] b [64, 16]^T, IEEE half operands and fp32 sums; + d if `adds` holds.
__device__ __forceinline__ void multiply_64(float (&d)[32], const std::uint32_t (&a)[4], std::uint64_t b, bool adds) {
  asm volatile(
      "{\n.reg .pred adds;\nsetp.ne.b32 adds, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "
      "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
      "}, {%32, %33, %34, %35}, %36, adds, 1, 1, 0;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
        "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
        "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
        "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(adds)));
}

/// d [64, 128] += a [64, 16] b [16, 128], b in rows of 64 columns.
__device__ __forceinline__ void multiply_128_transposed(float (&d)[64], const std::uint32_t (&a)[4], std::uint64_t b) {
  asm volatile(
      "{\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "
      "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, "
      "%42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "
      "%62, %63"
      "}, {%64, %65, %66, %67}, %68, 1, 1, 1, 1;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
        "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
        "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
        "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]),
        "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]),
        "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]),
        "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]),
        "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

/// Four 8 x 8 matrices of 16-bit elements, each transposed, from fragments as load_matrices gives them; lanes 8 m to
/// 8 m + 7 give the addresses of the rows of matrix m.
__device__ __forceinline__ void store_matrices_transposed(const std::uint32_t (&fragment)[4], void* row) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)),
               "r"(fragment[0]), "r"(fragment[1]), "r"(fragment[2]), "r"(fragment[3])
               : "memory");
}

}  // namespace treble::cuda::delta_rule
