#include "cuda/device_meter.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "cuda/nvml.h"

namespace treble::cuda {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(5);

class NvmlMeter final : public DeviceMeter {
 public:
  explicit NvmlMeter(int device) : nvml_(device), baseline_(nvml_.used_bytes()) {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }

  void watch() override {
    const std::lock_guard lock(mutex_);
    is_watching_ = true;
    changed_.notify_all();
  }

  void pause() override {
    const std::lock_guard lock(mutex_);
    if (is_watching_) sample();
    is_watching_ = false;
  }

  std::size_t peak_bytes() const override {
    const std::lock_guard lock(mutex_);
    return process_peak_ > 0 ? process_peak_ : device_peak_;
  }

  std::string source() const override {
    const std::lock_guard lock(mutex_);
    if (process_peak_ > 0) return "of the process, by NVML";
    if (baseline_) return "the device's use less its use before, by NVML";
    return "not read: there is no NVML";
  }

 private:
  void run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    // Told to stop, wait() returns what the condition says: true where an error ended what was watched.
    while (changed_.wait(lock, stop, [this] { return is_watching_; }) && !stop.stop_requested()) {
      sample();
      changed_.wait_for(lock, stop, kInterval, [] { return false; });
    }
  }

  /// With the mutex held.
  void sample() {
    process_peak_ = std::max(process_peak_, nvml_.process_bytes().value_or(0));
    const std::size_t used = nvml_.used_bytes().value_or(0);
    if (baseline_ && used > *baseline_) device_peak_ = std::max(device_peak_, used - *baseline_);
  }

  Nvml nvml_;
  std::optional<std::size_t> baseline_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  bool is_watching_ = false;
  std::size_t process_peak_ = 0, device_peak_ = 0;
  std::jthread thread_;  // the last: it ends before what it uses
};

}  // namespace

std::unique_ptr<DeviceMeter> make_device_meter(int device) {
  return std::make_unique<NvmlMeter>(device);
}

}  // namespace treble::cuda
