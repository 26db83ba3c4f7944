#include "cli/loading_bar.h"

#include <chrono>
#include <memory>
#include <optional>

#include "cli/progress_bar.h"

namespace treble::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kQuiet = std::chrono::seconds(1);

/// One bar for each model that is loaded with it.
class Loading {
 public:
  void update(std::uint64_t done_bytes, std::uint64_t total_bytes) {
    if (!bar_ || done_bytes < last_bytes_) {
      bar_.emplace(true, 0, total_bytes, "MiB of weights");
      start_ = Clock::now();
    }
    last_bytes_ = done_bytes;
    if (done_bytes == total_bytes) return bar_->clear();
    if (Clock::now() - start_ > kQuiet) bar_->update(static_cast<std::int64_t>(done_bytes >> 20), done_bytes);
  }

 private:
  std::optional<ProgressBar> bar_;
  Clock::time_point start_;
  std::uint64_t last_bytes_ = 0;
};

}  // namespace

LoadProgress loading_bar() {
  return [loading = std::make_shared<Loading>()](std::uint64_t done_bytes, std::uint64_t total_bytes) {
    loading->update(done_bytes, total_bytes);
  };
}

}  // namespace treble::cli
