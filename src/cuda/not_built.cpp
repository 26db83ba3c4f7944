#include <treble/error.h>

#include "cuda/device_meter.h"
#include "cuda/make_cuda_ops.h"

// What a build without TREBLE_CUDA has instead of the backend.

namespace treble::cuda {

bool is_built() {
  return false;
}

int num_devices() {
  return 0;
}

std::unique_ptr<Ops> make_cuda_ops(const CudaOptions&) {
  throw Error(ErrorCode::kDevice,
              "device: this build has no CUDA backend; use --device cpu, or build with cmake --preset cuda");
}

std::unique_ptr<DeviceMeter> make_device_meter(int) {
  return nullptr;
}

}  // namespace treble::cuda
