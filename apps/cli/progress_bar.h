#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace treble::cli {

/// How far a run over a file has come.
struct Progress {
  std::int64_t answered = 0;  ///< lines, by this run; or what `unit` says
  std::string unit = "answered";
  double elapsed_s = 0;
  std::uint64_t begin_bytes = 0;  ///< where this run began
  std::uint64_t done_bytes = 0;
  std::uint64_t total_bytes = 0;  ///< 0: not known
};

/// "[#####.....]  50%  1200 answered  12.3/s  1:38 left"; without bar, share and time left if the total is not known.
std::string format_progress(const Progress& progress);

/// One line on stderr that is drawn over and over, if stderr is a terminal.
class ProgressBar {
 public:
  /// @param is_wanted  false: never drawn
  /// @param unit  what is counted
  ProgressBar(bool is_wanted, std::uint64_t begin_bytes, std::uint64_t total_bytes,
              const std::string& unit = "answered");
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Draws it, at most ten times a second.
  void update(std::int64_t answered, std::uint64_t done_bytes);
  /// Takes it away, so that something else can be written there.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  bool is_shown_;
  bool is_drawn_ = false;
  Progress progress_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_draw_{};
};

}  // namespace treble::cli
