#pragma once

namespace treble::cuda {

/// Makes a device the calling thread's current one and puts back what was, if it is in use: calls may come from any
/// thread, and a program that uses CUDA itself finds its own device. Errors are left to the call that follows.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) noexcept;
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = -1;  // -1: nothing to put back
};

}  // namespace treble::cuda
