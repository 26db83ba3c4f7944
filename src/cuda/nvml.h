#pragma once

#include <cstddef>
#include <optional>

namespace treble::cuda {

/// One GPU seen through NVML, the driver's management library, which is opened at run time: it is not part of the CUDA
/// toolkit, and not on every machine.
class Nvml {
 public:
  /// @param device  ordinal of the CUDA runtime
  explicit Nvml(int device);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// Bytes in use on the device, by whomever; nullopt: there is no NVML, or it does not know the device.
  std::optional<std::size_t> used_bytes() const;
  /// Bytes that this process uses; nullopt where NVML does not see it: containers have process ids of their own.
  std::optional<std::size_t> process_bytes() const;

 private:
  struct Library;

  Library* library_ = nullptr;
  void* device_ = nullptr;
};

}  // namespace treble::cuda
