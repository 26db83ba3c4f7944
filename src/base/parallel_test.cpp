#include "base/parallel.h"

#include <doctest/doctest.h>
#include <omp.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace treble {
namespace {

TEST_CASE("parallel_for: every index is visited once, whatever the number of threads") {
  for (const int num_threads : {1, 2, 5}) {
    const ThreadCount threads(num_threads);
    for (const std::int64_t count : {0, 1, 2, 1000}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
      parallel_for(count, [&](std::int64_t i) { ++visits[static_cast<std::size_t>(i)]; });
      for (const auto& visit : visits) CHECK(visit == 1);
    }
  }
}

TEST_CASE("parallel_for: an exception of a body reaches the caller, whichever index throws") {
  for (const int num_threads : {1, 3}) {
    const ThreadCount threads(num_threads);
    for (const std::int64_t thrower : {0, 57, 99}) {
      CHECK_THROWS_WITH_AS(parallel_for(100,
                                        [&](std::int64_t i) {
                                          if (i == thrower) throw std::runtime_error("index " + std::to_string(i));
                                        }),
                           ("index " + std::to_string(thrower)).c_str(), std::runtime_error);
    }
    CHECK_THROWS_AS(parallel_for(1, [](std::int64_t) { throw std::runtime_error("alone"); }), std::runtime_error);
  }
}

TEST_CASE("parallel_for: a loop inside a body still visits every index") {
  const ThreadCount threads(3);
  std::atomic<int> visits = 0;
  parallel_for(10, [&](std::int64_t) { parallel_for(10, [&](std::int64_t) { ++visits; }); });
  CHECK(visits == 100);
}

TEST_CASE("parallel_ranges: the ranges cover the indices without overlap, and only the last is short") {
  const ThreadCount threads(2);
  for (const std::int64_t count : {0, 1, 7, 8, 9, 64}) {
    std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
    parallel_ranges(count, 8, [&](std::int64_t begin, std::int64_t end) {
      CHECK(begin % 8 == 0);
      CHECK((end == count || end == begin + 8));
      for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
    });
    for (const auto& visit : visits) CHECK(visit == 1);
  }
}

TEST_CASE("thread_count: the number of threads holds for a scope and is then as before") {
  CHECK(available_threads() >= 1);
  const int before = omp_get_max_threads();
  {
    const ThreadCount outer(4);
    CHECK(omp_get_max_threads() == 4);
    {
      const ThreadCount inner(1);
      CHECK(omp_get_max_threads() == 1);
    }
    CHECK(omp_get_max_threads() == 4);
  }
  CHECK(omp_get_max_threads() == before);
}

TEST_CASE("thread_count: with one thread, every body runs on the caller") {
  const ThreadCount threads(1);
  const std::thread::id caller = std::this_thread::get_id();
  parallel_for(50, [&](std::int64_t) { CHECK(std::this_thread::get_id() == caller); });
}

}  // namespace
}  // namespace treble
