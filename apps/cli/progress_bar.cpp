#include "cli/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cli/terminal.h"

namespace treble::cli {
namespace {

constexpr std::size_t kBarCells = 20;

/// "0:07", "12:30", "3:02:00".
std::string format_duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::clamp(seconds, 0.0, 1e9) + 0.5);
  const std::int64_t hours = whole / 3600, minutes = whole / 60 % 60, rest = whole % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, rest) : fmt::format("{}:{:02}", minutes, rest);
}

}  // namespace

std::string format_progress(const Progress& progress) {
  const double per_s = progress.elapsed_s > 0 ? static_cast<double>(progress.answered) / progress.elapsed_s : 0;
  std::string text = fmt::format("{} {}  {:.1f}/s", progress.answered, progress.unit, per_s);
  if (progress.total_bytes == 0) return text;

  const std::uint64_t done = std::min(progress.done_bytes, progress.total_bytes);  // the file may still grow
  const double share = static_cast<double>(done) / static_cast<double>(progress.total_bytes);
  const auto cells = static_cast<std::size_t>(share * kBarCells);
  text = fmt::format("[{:.<{}}] {:3.0f}%  {}", std::string(cells, '#'), kBarCells, std::floor(share * 100), text);
  if (done > progress.begin_bytes) {
    const double bytes_per_s = static_cast<double>(done - progress.begin_bytes) / std::max(progress.elapsed_s, 1e-9);
    text += fmt::format("  {} left", format_duration(static_cast<double>(progress.total_bytes - done) / bytes_per_s));
  }
  return text;
}

ProgressBar::ProgressBar(bool is_wanted, std::uint64_t begin_bytes, std::uint64_t total_bytes, const std::string& unit)
    : is_shown_(is_wanted && is_terminal(STDERR_FILENO)) {
  progress_.unit = unit;
  progress_.begin_bytes = begin_bytes;
  progress_.total_bytes = total_bytes;
}

void ProgressBar::update(std::int64_t answered, std::uint64_t done_bytes) {
  if (!is_shown_) return;
  const Clock::time_point now = Clock::now();
  if (is_drawn_ && now - last_draw_ < std::chrono::milliseconds(100)) return;
  progress_.answered = answered;
  progress_.done_bytes = done_bytes;
  progress_.elapsed_s = std::chrono::duration<double>(now - start_).count();
  const std::string text = format_progress(progress_);
  write_to_stderr("\r\x1b[K" + text.substr(0, static_cast<std::size_t>(terminal_width(STDERR_FILENO) - 1)));
  last_draw_ = now;
  is_drawn_ = true;
}

void ProgressBar::clear() {
  if (!is_drawn_) return;
  write_to_stderr("\r\x1b[K");
  is_drawn_ = false;
}

}  // namespace treble::cli
