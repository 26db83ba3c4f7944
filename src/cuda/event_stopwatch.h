#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "cuda/handles.h"
#include "ops/stopwatch.h"

namespace treble::cuda {

/// Marks are events in the stream.
class EventStopwatch final : public Stopwatch {
 public:
  explicit EventStopwatch(cudaStream_t stream) : stream_(stream) {}

  void mark() override;
  std::vector<double> stages_ms() override;

 private:
  cudaStream_t stream_;
  std::vector<Event> marks_;
};

}  // namespace treble::cuda
