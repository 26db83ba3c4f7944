#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

#include "cuda/handles.h"

namespace treble::cuda {

/// Device memory for weights that only grows. Weights placed one after the other lie one after the other, without a gap
/// between those whose size is a multiple of 256 bytes: the rows of projections that share an input are then the rows
/// of one matrix. A range of addresses is reserved once; memory is put behind it in chunks as weights come, so at most
/// one chunk is not used.
class WeightArena {
 public:
  /// @param device  ordinal of the CUDA runtime
  explicit WeightArena(int device);
  ~WeightArena();
  WeightArena(const WeightArena&) = delete;
  WeightArena& operator=(const WeightArena&) = delete;

  /// 256-byte aligned. @throws Error kDevice when there is not enough
  std::byte* take(std::size_t num_bytes);

  /// Bytes taken from the device.
  std::size_t allocated_bytes() const { return mapped_bytes_; }

 private:
  /// The driver's virtual memory calls, found at run time: the program starts where there is no driver.
  struct Driver {
    decltype(&cuMemAddressReserve) reserve = nullptr;
    decltype(&cuMemAddressFree) free_addresses = nullptr;
    decltype(&cuMemCreate) create = nullptr;
    decltype(&cuMemRelease) release = nullptr;
    decltype(&cuMemMap) map = nullptr;
    decltype(&cuMemUnmap) unmap = nullptr;
    decltype(&cuMemSetAccess) set_access = nullptr;
    decltype(&cuMemGetAllocationGranularity) granularity = nullptr;
    Driver();
  };

  CUmemAllocationProp properties() const;
  void grow(std::size_t num_bytes);

  int device_;
  Driver driver_;
  CUdeviceptr base_ = 0;
  std::size_t reserved_bytes_ = 0;
  std::size_t chunk_bytes_ = 0;
  std::size_t mapped_bytes_ = 0;
  std::size_t used_bytes_ = 0;
  std::vector<CUmemGenericAllocationHandle> chunks_;
};

}  // namespace treble::cuda
