#pragma once

#include <memory>

#include "ops/device_meter.h"

namespace treble::cuda {

/// Made before the process opens the device, so that what others use is known. It reads NVML, which comes with the
/// driver: what that counts for this process, or, where a container hides that, the device's use less its use now.
/// @return nullptr in a build without CUDA
std::unique_ptr<DeviceMeter> make_device_meter(int device);

}  // namespace treble::cuda
