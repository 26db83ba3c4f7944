#pragma once

#include <chrono>
#include <vector>

namespace treble {

/// Measures stages of a pass without waiting between them.
class Stopwatch {
 public:
  virtual ~Stopwatch() = default;
  /// Here one stage ends and the next begins.
  virtual void mark() = 0;
  /// Milliseconds from each mark to the next, after waiting for the last one.
  virtual std::vector<double> stages_ms() = 0;
};

/// Of operations that are done when their calls return.
class HostStopwatch final : public Stopwatch {
 public:
  void mark() override { marks_.push_back(std::chrono::steady_clock::now()); }
  std::vector<double> stages_ms() override {
    std::vector<double> stages;
    for (std::size_t i = 1; i < marks_.size(); ++i)
      stages.push_back(std::chrono::duration<double, std::milli>(marks_[i] - marks_[i - 1]).count());
    return stages;
  }

 private:
  std::vector<std::chrono::steady_clock::time_point> marks_;
};

}  // namespace treble
