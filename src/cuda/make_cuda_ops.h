#pragma once

#include <treble/int8_activations.h>

#include <memory>
#include <string>

#include "cuda/kernel_set.h"
#include "ops/ops.h"

namespace treble::cuda {

struct CudaOptions {
  int device = 0;  ///< ordinal among those that the process sees
  DType activation_dtype = DType::kBF16;
  Int8Activations int8_activations = Int8Activations::kPrecise;  ///< how INT8 Linears quantise their inputs
  KernelSet kernels = KernelSet::kBest;
  bool tables_on_device = false;  ///< vocabulary tables, of which a pass reads a few rows, take device memory too
  std::size_t memory_limit = 0;   ///< the most bytes that the process may take of the device; 0: what is free
};

/// Whether this build has the backend.
bool is_built();

/// Devices that the operations run on; none where there is no driver or the build has no backend.
int num_devices();

/// Operations on an NVIDIA GPU. @throws Error kDevice: not built in, no such device, too old a device or driver
std::unique_ptr<Ops> make_cuda_ops(const CudaOptions& options);

}  // namespace treble::cuda
