#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

namespace treble {

/// Threads that this machine lets the process run at once (its CPU affinity counts).
int available_threads();

/// For its lifetime, the calling thread's parallel_for and its calls into oneDNN use this many threads.
class ThreadCount {
 public:
  explicit ThreadCount(int num_threads);
  ~ThreadCount();
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int before_;
};

/// Calls body(i) for every i in [0, count), in no order, on the calling thread's threads; returns when all are done.
/// The first exception that a call throws is rethrown here. Inside a body, parallel_for runs on one thread.
void parallel_for(std::int64_t count, const std::function<void(std::int64_t)>& body);

/// The same in ranges: body(begin, end), each of `grain` indices but the last.
template <typename Body>
void parallel_ranges(std::int64_t count, std::int64_t grain, const Body& body) {
  parallel_for((count + grain - 1) / grain,
               [&](std::int64_t range) { body(range * grain, std::min(count, (range + 1) * grain)); });
}

}  // namespace treble
