#include "base/parallel.h"

#include <omp.h>

#include <atomic>
#include <exception>

// OpenMP, because oneDNN runs on it: two pools of threads would take the cores from each other.

namespace treble {

int available_threads() {
  return omp_get_num_procs();
}

ThreadCount::ThreadCount(int num_threads) : before_(omp_get_max_threads()) {
  omp_set_num_threads(num_threads);
}

ThreadCount::~ThreadCount() {
  omp_set_num_threads(before_);
}

void parallel_for(std::int64_t count, const std::function<void(std::int64_t)>& body) {
  if (count <= 1 || omp_in_parallel()) {
    for (std::int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  std::exception_ptr error;
  std::atomic_flag failed = ATOMIC_FLAG_INIT;
  // One index at a time: bodies are long (hundreds of microseconds) and uneven.
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t i = 0; i < count; ++i) {
    try {
      body(i);
    } catch (...) {
      if (!failed.test_and_set()) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace treble
