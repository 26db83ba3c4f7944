#pragma once

#include <cstddef>
#include <string_view>

#include "ops/planner.h"

namespace treble::cuda {

/// What a device has for a model.
struct DeviceRoom {
  std::string_view name;   ///< "cuda:0 (NVIDIA H200, compute capability 9.0)"
  std::size_t free_bytes;  ///< that the driver has, or the limit leaves
  std::size_t total_bytes;
  std::size_t limit_bytes = 0;  ///< --memory-limit; 0: none
};

/// @throws Error kDevice if a model and its passes do not fit: what they need, what is free, and what to change
void check_fits(const MemoryNeeds& needs, const DeviceRoom& room);

}  // namespace treble::cuda
