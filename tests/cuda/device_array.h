#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "cuda/make_cuda_ops.h"
#include "cuda/status.h"

// What tests of kernels need of the device itself.

namespace treble::cuda {

/// Multiprocessors of the first device, or 0 where these kernels do not run.
inline int num_hopper_sms() {
  if (num_devices() == 0) return 0;
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, 0), "reading the device's properties");
  return properties.major == 9 ? properties.multiProcessorCount : 0;
}

/// An array on the device, as long as this lives.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values) : size_(values.size()) {
    check(cudaMalloc(&data_, size_ * sizeof(T)), "taking memory for a test");
    check(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice), "copying to the device");
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* get() const { return static_cast<T*>(data_); }
  std::vector<T> read() const {
    std::vector<T> values(size_);
    check(cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost), "copying from the device");
    return values;
  }

 private:
  void* data_ = nullptr;
  std::size_t size_;
};

}  // namespace treble::cuda
