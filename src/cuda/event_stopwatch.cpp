#include "cuda/event_stopwatch.h"

#include "cuda/status.h"

namespace treble::cuda {

void EventStopwatch::mark() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "measuring time");
  marks_.emplace_back(event);
  check(cudaEventRecord(event, stream_), "measuring time");
}

std::vector<double> EventStopwatch::stages_ms() {
  std::vector<double> stages;
  if (marks_.empty()) return stages;
  check(cudaEventSynchronize(marks_.back().get()), "measuring time");
  for (std::size_t i = 1; i < marks_.size(); ++i) {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, marks_[i - 1].get(), marks_[i].get()), "measuring time");
    stages.push_back(static_cast<double>(milliseconds));
  }
  return stages;
}

}  // namespace treble::cuda
