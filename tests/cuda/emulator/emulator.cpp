#include "emulator.h"

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace treble::cuda::emulator {
namespace {

constexpr std::size_t kStackBytes = 128 << 10;
constexpr int kWarpSize = 32;

/// Threads that wait for each other.
struct Barrier {
  int num_threads = 0;  // that have not ended
  int num_arrived = 0;
  std::uint64_t generation = 0;

  void open_if_all_arrived() {
    if (num_threads == 0 || num_arrived < num_threads) return;
    num_arrived = 0;
    ++generation;
  }
};

struct Warp {
  Barrier barrier;
  std::array<Slots, 2> slots;  // of even and of odd exchanges: one barrier is enough for each
};

struct Copy {
  void* to;
  const void* from;
  bool is_there;
};

struct Fiber {
  std::unique_ptr<std::byte[]> stack{new std::byte[kStackBytes]};
  ucontext_t start;
  jmp_buf position;
  bool is_started = false, is_done = false;
  unsigned index = 0;
  Warp* warp = nullptr;
  const Barrier* waits_for = nullptr;
  std::uint64_t waits_until = 0;  // its generation is higher
  int num_exchanges = 0;
  std::vector<std::vector<Copy>> groups;  // of copies; the last is open
};

/// One block at a time.
struct State {
  std::vector<std::unique_ptr<Fiber>> fibers;  // kept from block to block for their stacks
  std::vector<std::unique_ptr<Warp>> warps;
  Barrier block;
  std::vector<unsigned char> shared;
  Fiber* running = nullptr;
  jmp_buf scheduler;
  const std::function<void()>* thread = nullptr;
  int num_launches = 0;
};

State& state() {
  static State state;
  return state;
}

void wait(Barrier& barrier) {
  Fiber& fiber = *state().running;
  fiber.waits_for = &barrier;
  fiber.waits_until = barrier.generation;
  ++barrier.num_arrived;
  barrier.open_if_all_arrived();
  if (_setjmp(fiber.position) == 0) _longjmp(state().scheduler, 1);
}

void run_fiber() {
  (*state().thread)();
  Fiber& fiber = *state().running;
  fiber.is_done = true;
  for (Barrier* barrier : {&state().block, &fiber.warp->barrier}) {
    --barrier->num_threads;
    barrier->open_if_all_arrived();
  }
  _longjmp(state().scheduler, 1);
}

void resume(Fiber& fiber) {
  state().running = &fiber;
  threadIdx = {fiber.index, 0, 0};
  if (_setjmp(state().scheduler) != 0) return;
  if (fiber.is_started) _longjmp(fiber.position, 1);
  fiber.is_started = true;
  setcontext(&fiber.start);
}

void start_block(int num_threads) {
  State& s = state();
  while (s.fibers.size() < static_cast<std::size_t>(num_threads)) s.fibers.push_back(std::make_unique<Fiber>());
  while (s.warps.size() * kWarpSize < static_cast<std::size_t>(num_threads))
    s.warps.push_back(std::make_unique<Warp>());
  s.block = {num_threads, 0, 0};
  for (std::size_t w = 0; w < s.warps.size(); ++w)
    s.warps[w]->barrier = {std::clamp(num_threads - static_cast<int>(w) * kWarpSize, 0, kWarpSize), 0, 0};
  for (int i = 0; i < num_threads; ++i) {
    Fiber& fiber = *s.fibers[static_cast<std::size_t>(i)];
    fiber.is_started = fiber.is_done = false;
    fiber.index = static_cast<unsigned>(i);
    fiber.warp = s.warps[static_cast<std::size_t>(i / kWarpSize)].get();
    fiber.waits_for = nullptr;
    fiber.num_exchanges = 0;
    fiber.groups.assign(1, {});
    getcontext(&fiber.start);
    fiber.start.uc_stack.ss_sp = fiber.stack.get();
    fiber.start.uc_stack.ss_size = kStackBytes;
    fiber.start.uc_link = nullptr;
    makecontext(&fiber.start, run_fiber, 0);
  }
}

void run_block(int num_threads) {
  State& s = state();
  start_block(num_threads);
  const bool is_reversed = s.num_launches % 2 == 1;
  for (int num_done = 0; num_done < num_threads;) {
    bool has_run = false;
    num_done = 0;
    for (int i = 0; i < num_threads; ++i) {
      Fiber& fiber = *s.fibers[static_cast<std::size_t>(is_reversed ? num_threads - 1 - i : i)];
      const bool is_ready = !fiber.waits_for || fiber.waits_for->generation > fiber.waits_until;
      if (!fiber.is_done && is_ready) {
        fiber.waits_for = nullptr;
        resume(fiber);
        has_run = true;
      }
      num_done += fiber.is_done;
    }
    if (!has_run && num_done < num_threads) {
      std::fprintf(stderr, "emulator: block (%u, %u, %u): not all threads reach a barrier\n", blockIdx.x, blockIdx.y,
                   blockIdx.z);
      std::abort();
    }
  }
}

}  // namespace

void run(dim3 grid, int num_threads, std::size_t shared_bytes, const std::function<void()>& thread) {
  State& s = state();
  s.thread = &thread;
  ++s.num_launches;
  gridDim = grid;
  blockDim = dim3(static_cast<unsigned>(num_threads));
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        blockIdx = {x, y, z};
        s.shared.assign(shared_bytes + 16, 0xff);  // not a number in every type
        run_block(num_threads);
      }
    }
  }
}

unsigned char* dynamic_shared() {
  unsigned char* memory = state().shared.data();
  return memory + (16 - reinterpret_cast<std::uintptr_t>(memory) % 16) % 16;
}

void sync_block() {
  wait(state().block);
}

void sync_warp() {
  wait(state().running->warp->barrier);
}

const Slots& exchange(const void* own, std::size_t num_bytes) {
  Fiber& fiber = *state().running;
  Slots& slots = fiber.warp->slots[static_cast<std::size_t>(fiber.num_exchanges++ % 2)];
  std::memcpy(slots[fiber.index % kWarpSize].data(), own, num_bytes);
  wait(fiber.warp->barrier);
  return slots;
}

void copy_async(void* shared, const void* global, bool is_there) {
  state().running->groups.back().push_back({shared, global, is_there});
}

void commit_copies() {
  state().running->groups.emplace_back();
}

void wait_for_copies(int num_pending) {
  auto& groups = state().running->groups;
  const auto num_committed = static_cast<std::ptrdiff_t>(groups.size()) - 1;
  const std::ptrdiff_t num_ready = std::max<std::ptrdiff_t>(num_committed - num_pending, 0);
  constexpr std::size_t kBytes = 16;
  for (auto group = groups.begin(); group != groups.begin() + num_ready; ++group) {
    for (const Copy& copy : *group) {
      if (copy.is_there) {
        std::memcpy(copy.to, copy.from, kBytes);
      } else {
        std::memset(copy.to, 0, kBytes);
      }
    }
  }
  groups.erase(groups.begin(), groups.begin() + num_ready);
}

}  // namespace treble::cuda::emulator
