#include "cuda/device_meter.h"

#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <thread>
#include <utility>

using namespace treble;

TEST_CASE("cuda: a meter that an error leaves watching ends nevertheless") {
  // On its own thread: a meter that does not end would hold the test for ever.
  std::packaged_task<void()> task([] { cuda::make_device_meter(0)->watch(); });
  std::future<void> ended = task.get_future();
  std::thread thread(std::move(task));
  const bool has_ended = ended.wait_for(std::chrono::seconds(60)) == std::future_status::ready;
  CHECK(has_ended);
  has_ended ? thread.join() : thread.detach();
}
