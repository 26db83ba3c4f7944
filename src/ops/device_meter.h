#pragma once

#include <cstddef>
#include <string>

namespace treble {

/// What a driver counts as a process's memory on a device: contexts, kernels, and what allocations round up. A thread
/// of its own asks every 5 ms while it is watching.
class DeviceMeter {
 public:
  virtual ~DeviceMeter() = default;
  /// Asking takes locks that launches take too: nothing should be timed meanwhile.
  virtual void watch() = 0;
  virtual void pause() = 0;
  /// The most that was seen; 0: nothing could be read.
  virtual std::size_t peak_bytes() const = 0;
  /// What the figure is: "of the process, by NVML".
  virtual std::string source() const = 0;
};

}  // namespace treble
