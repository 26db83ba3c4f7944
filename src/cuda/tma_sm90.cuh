#pragma once

#include <cuda.h>

#include <cstdint>

// Hopper's copies between global and shared memory by tensor maps (TMA), the barriers that count their bytes, and what
// the blocks of a cluster do together. Addresses are 32-bit addresses of shared memory. Only code for compute
// capability 9.0a may call what is here.

namespace treble::cuda {

__device__ __forceinline__ std::uint32_t shared_address(const void* shared) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
}

/// A barrier in shared memory: a phase ends when so many threads have arrived and all announced bytes have come.
struct PhaseBarrier {
  std::uint32_t address;

  __device__ __forceinline__ void init(int num_arrivals) const {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address), "r"(num_arrivals) : "memory");
  }
  __device__ __forceinline__ void arrive() const {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address) : "memory");
  }
  /// Arrives, and announces bytes that copies will bring in this phase.
  __device__ __forceinline__ void arrive_and_expect(std::uint32_t num_bytes) const {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address), "r"(num_bytes) : "memory");
  }
  /// Arrives at the barrier that lies here in another block of the cluster. For operands that have been read; it does
  /// not publish what this thread wrote to other blocks, which would take a fence of the whole device.
  __device__ __forceinline__ void arrive_in_block(std::uint32_t rank) const {
    asm volatile(
        "{\n.reg .b32 remote;\n"
        "mapa.shared::cluster.u32 remote, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(address),
        "r"(rank)
        : "memory");
  }
  /// Waits until the phase of this parity has ended; the one before the first counts as ended, with parity 1.
  __device__ __forceinline__ void wait(std::uint32_t parity) const {
    asm volatile(
        "{\n.reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n}" ::"r"(address),
        "r"(parity)
        : "memory");
  }
};

/// Makes initialised barriers visible to copies and to other blocks.
__device__ __forceinline__ void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ std::uint32_t block_rank_in_cluster() {
  std::uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// Every thread of every block of the cluster.
__device__ __forceinline__ void sync_cluster() {
  asm volatile(
      "barrier.cluster.arrive.release;\n"
      "barrier.cluster.wait.acquire;" ::
          : "memory");
}

/// Some of a block's threads: barrier 1 to 15, each with its own ones.
__device__ __forceinline__ void sync_threads_at(int barrier, int num_threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(num_threads) : "memory");
}

/// Gives back registers of every thread of this warpgroup, or takes more.
template <int kRegisters>
__device__ __forceinline__ void shrink_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void grow_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

__device__ __forceinline__ void prefetch_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(reinterpret_cast<std::uint64_t>(&map)) : "memory");
}

/// Starts copying a box of a matrix, its first element at (column, row); zeros where the matrix ends.
__device__ __forceinline__ void load_box(std::uint32_t to, const CUtensorMap& map, PhaseBarrier barrier, int column,
                                         int row) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          to),
      "l"(reinterpret_cast<std::uint64_t>(&map)), "r"(column), "r"(row), "r"(barrier.address)
      : "memory");
}

/// The same of a tensor [rows, groups, columns].
__device__ __forceinline__ void load_box(std::uint32_t to, const CUtensorMap& map, PhaseBarrier barrier, int column,
                                         int group, int row) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::
          "r"(to),
      "l"(reinterpret_cast<std::uint64_t>(&map)), "r"(column), "r"(group), "r"(row), "r"(barrier.address)
      : "memory");
}
/// Starts bringing a box to the L2 cache only.
__device__ __forceinline__ void prefetch_box(const CUtensorMap& map, int column, int row) {
  asm volatile(
      "cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];" ::"l"(reinterpret_cast<std::uint64_t>(&map)),
      "r"(column), "r"(row)
      : "memory");
}
__device__ __forceinline__ void prefetch_box(const CUtensorMap& map, int column, int group, int row) {
  asm volatile(
      "cp.async.bulk.prefetch.tensor.3d.L2.global [%0, {%1, %2, %3}];" ::"l"(reinterpret_cast<std::uint64_t>(&map)),
      "r"(column), "r"(group), "r"(row)
      : "memory");
}

/// The same of a tensor [groups, pairs, rows, columns].
__device__ __forceinline__ void load_box(std::uint32_t to, const CUtensorMap& map, PhaseBarrier barrier, int column,
                                         int row, int pair, int group) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], "
      "[%6];" ::"r"(to),
      "l"(reinterpret_cast<std::uint64_t>(&map)), "r"(column), "r"(row), "r"(pair), "r"(group), "r"(barrier.address)
      : "memory");
}

/// Starts copying a box of a matrix to every block of the mask: to the same address there, counted by the barrier
/// there.
__device__ __forceinline__ void load_rows_to_cluster(std::uint32_t to, const CUtensorMap& map, PhaseBarrier barrier,
                                                     int column, int row, std::uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
      "[%1, {%2, %3}], [%4], %5;" ::"r"(to),
      "l"(reinterpret_cast<std::uint64_t>(&map)), "r"(column), "r"(row), "r"(barrier.address), "h"(blocks)
      : "memory");
}
/// Starts copying a box of a tensor [groups, 2, 8, columns], from its group on, to every block of the mask: to the same
/// address there, counted by the barrier there.
__device__ __forceinline__ void load_box_to_cluster(std::uint32_t to, const CUtensorMap& map, PhaseBarrier barrier,
                                                    int column, int group, std::uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
      "[%1, {%2, %3, %3, %4}], [%5], %6;" ::"r"(to),
      "l"(reinterpret_cast<std::uint64_t>(&map)), "r"(column), "r"(0), "r"(group), "r"(barrier.address), "h"(blocks)
      : "memory");
}

/// Stores four 8 x 8 matrices of 16-bit elements, each transposed: lanes 8 m to 8 m + 7 name the rows of matrix m,
/// which are 16 bytes. The inverse of load_matrices_transposed.
__device__ __forceinline__ void store_matrices_transposed(std::uint32_t row, const std::uint32_t (&fragment)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(fragment[0]),
               "r"(fragment[1]), "r"(fragment[2]), "r"(fragment[3])
               : "memory");
}
/// One matrix; lanes 0 to 7 name its rows.
__device__ __forceinline__ void store_matrix_transposed(std::uint32_t row, std::uint32_t fragment) {
  asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(row), "r"(fragment) : "memory");
}

/// The inverse of store_matrices_transposed.
__device__ __forceinline__ void load_matrices_transposed(std::uint32_t (&fragment)[4], std::uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(row)
               : "memory");
}
/// One matrix; lanes 0 to 7 name its rows.
__device__ __forceinline__ std::uint32_t load_matrix_transposed(std::uint32_t row) {
  std::uint32_t fragment;
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(fragment) : "r"(row) : "memory");
  return fragment;
}

/// Floats in shared memory.
__device__ __forceinline__ void store_float(std::uint32_t to, float value) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(value) : "memory");
}
__device__ __forceinline__ float load_float(std::uint32_t from) {
  float value;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(from) : "memory");
  return value;
}
/// Two, at a multiple of 8 bytes.
__device__ __forceinline__ float2 load_floats(std::uint32_t from) {
  float2 values;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(values.x), "=f"(values.y) : "r"(from) : "memory");
  return values;
}

/// Starts storing a box; nothing is written where the matrix ends.
__device__ __forceinline__ void store_box(const CUtensorMap& map, std::uint32_t from, int column, int row) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(
                   reinterpret_cast<std::uint64_t>(&map)),
               "r"(column), "r"(row), "r"(from)
               : "memory");
}
/// Ends a group of stores of this thread.
__device__ __forceinline__ void commit_stores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Waits until this thread's stores have read shared memory.
__device__ __forceinline__ void wait_until_stores_have_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
/// Before a store by tensor map, or a product, reads what this thread wrote to shared memory.
__device__ __forceinline__ void publish_shared_writes() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

}  // namespace treble::cuda
