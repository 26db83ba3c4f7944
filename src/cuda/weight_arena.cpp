#include "cuda/weight_arena.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>
#include <string_view>

#include "cuda/driver_entry.h"
#include "cuda/memory_sizes.h"
#include "cuda/status.h"

namespace treble::cuda {
namespace {

void check_driver(CUresult status, std::string_view what) {
  if (status == CUDA_SUCCESS) return;
  throw Error(ErrorCode::kDevice,
              fmt::format("cuda: {}: the driver returns error {}; is another process using the GPU?", what,
                          static_cast<int>(status)));
}

}  // namespace

WeightArena::Driver::Driver() {
  reserve = find_driver_entry<decltype(reserve)>("cuMemAddressReserve");
  free_addresses = find_driver_entry<decltype(free_addresses)>("cuMemAddressFree");
  create = find_driver_entry<decltype(create)>("cuMemCreate");
  release = find_driver_entry<decltype(release)>("cuMemRelease");
  map = find_driver_entry<decltype(map)>("cuMemMap");
  unmap = find_driver_entry<decltype(unmap)>("cuMemUnmap");
  set_access = find_driver_entry<decltype(set_access)>("cuMemSetAccess");
  granularity = find_driver_entry<decltype(granularity)>("cuMemGetAllocationGranularity");
}

CUmemAllocationProp WeightArena::properties() const {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device_;
  return properties;
}

WeightArena::WeightArena(int device) : device_(device) {
  std::size_t free_bytes = 0, total_bytes = 0, granularity = 0;
  check(cudaMemGetInfo(&free_bytes, &total_bytes), "reading how much memory is free");
  const CUmemAllocationProp wanted = properties();
  check_driver(driver_.granularity(&granularity, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM), "reading the page size");
  chunk_bytes_ = round_up(kWeightChunkBytes, granularity);
  reserved_bytes_ = round_up(total_bytes, chunk_bytes_);
  check_driver(driver_.reserve(&base_, reserved_bytes_, 0, 0, 0), "reserving addresses for weights");
}

WeightArena::~WeightArena() {
  cudaDeviceSynchronize();
  if (mapped_bytes_ > 0) driver_.unmap(base_, mapped_bytes_);
  for (const CUmemGenericAllocationHandle chunk : chunks_) driver_.release(chunk);
  if (base_ != 0) driver_.free_addresses(base_, reserved_bytes_);
}

std::byte* WeightArena::take(std::size_t num_bytes) {
  const std::size_t begin = used_bytes_;
  used_bytes_ += round_up(std::max<std::size_t>(num_bytes, 1), kWeightAlignment);
  try {
    while (mapped_bytes_ < used_bytes_) grow(num_bytes);
  } catch (...) {
    used_bytes_ = begin;
    throw;
  }
  return reinterpret_cast<std::byte*>(base_) + begin;
}

void WeightArena::grow(std::size_t num_bytes) {
  CUmemGenericAllocationHandle chunk{};
  const CUmemAllocationProp wanted = properties();
  const CUresult status =
      mapped_bytes_ == reserved_bytes_ ? CUDA_ERROR_OUT_OF_MEMORY : driver_.create(&chunk, chunk_bytes_, &wanted, 0);
  if (status == CUDA_ERROR_OUT_OF_MEMORY) {
    std::size_t free_bytes = 0, total_bytes = 0;
    check(cudaMemGetInfo(&free_bytes, &total_bytes), "reading how much memory is free");
    throw Error(
        ErrorCode::kDevice,
        fmt::format("cuda: the model does not fit: {} MiB of weights are placed, {} MiB come next, {} of {} MiB "
                    "are free; use a smaller model or another --device",
                    mapped_bytes_ >> 20, num_bytes >> 20, free_bytes >> 20, total_bytes >> 20));
  }
  check_driver(status, "taking memory for weights");
  const CUdeviceptr address = base_ + mapped_bytes_;
  const CUresult mapped = driver_.map(address, chunk_bytes_, 0, chunk, 0);
  if (mapped != CUDA_SUCCESS) driver_.release(chunk);
  check_driver(mapped, "mapping memory for weights");
  chunks_.push_back(chunk);
  mapped_bytes_ += chunk_bytes_;
  CUmemAccessDesc access{};
  access.location = wanted.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  check_driver(driver_.set_access(address, chunk_bytes_, &access, 1), "opening memory for weights");
}

}  // namespace treble::cuda
