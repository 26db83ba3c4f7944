#include "engine/choose_passes.h"

#include <doctest/doctest.h>

#include "cuda/cuda_planner.h"
#include "model/shape_source.h"
#include "model/synthetic.h"

namespace treble {
namespace {

constexpr std::size_t kGiB = std::size_t{1} << 30;

/// The 27B in INT8: 23.9 GiB of weights with its tower, on Hopper.
struct Planned {
  ShapeSource shapes{true, WeightConversion::kInt8Convrot};
  PlannedModel whole, text;

  Planned() : whole(config(true), shapes, planner()), text(config(false), shapes, planner()) {}

  static ModelConfig config(bool has_tower) {
    ModelConfig config = synthetic_config("27b");
    if (!has_tower) config.vision.reset();
    return config;
  }
  static std::unique_ptr<Planner> planner() { return std::make_unique<cuda::CudaPlanner>(cuda::CudaOptions(), 90); }

  PassChoice choose(std::size_t room, std::int64_t pass_tokens = 0, std::int64_t max_tokens = 65536) const {
    return choose_passes(text, whole, {.pass_tokens = pass_tokens, .max_tokens = max_tokens, .room = room});
  }
};

std::size_t sum_of(const MemoryNeeds& needs) {
  return needs.weights + needs.activations + needs.scratch;
}

TEST_CASE("choose_passes: with room enough passes are of 16,384 tokens, and texts as long as they may be") {
  const Planned model;
  const PassChoice choice = model.choose(80 * kGiB);
  CHECK(choice.fits);
  CHECK(choice.tower_fits);
  CHECK(choice.needs.pass_tokens == 16384);
  CHECK(choice.longest_tokens == 65536);
  // The tower's weights, and what it takes of a pass, come on top of the model's own.
  CHECK(choice.with_tower.weights > choice.needs.weights + kGiB / 4);
  CHECK(choice.with_tower.activations >= choice.needs.activations);
}

TEST_CASE("choose_passes: with less room passes are shorter, so that a text of max_tokens fits beside") {
  const Planned model;
  const std::size_t room = 29 * kGiB;
  const PassChoice choice = model.choose(room);
  CHECK(choice.tower_fits);
  CHECK(choice.needs.pass_tokens < 16384);
  CHECK(choice.needs.pass_tokens >= 2048);
  CHECK(choice.longest_tokens == 65536);
  CHECK(sum_of(choice.with_tower) + model.text.beside(65536, choice.with_tower) <= room);
}

TEST_CASE("choose_passes: where that is not to be had, passes are of 2,048 tokens and texts as long as then fit") {
  const Planned model;
  const std::size_t room = 25 * kGiB + kGiB / 2;
  const PassChoice choice = model.choose(room);
  CHECK(choice.tower_fits);
  CHECK(choice.needs.pass_tokens == 2048);
  CHECK(choice.longest_tokens > 12000);
  CHECK(choice.longest_tokens < 65536);
  const auto taken = [&](std::int64_t tokens) {
    return sum_of(choice.with_tower) + model.text.beside(tokens, choice.with_tower);
  };
  CHECK(taken(choice.longest_tokens) <= room);
  CHECK(taken(choice.longest_tokens + 64) > room);
}

TEST_CASE("choose_passes: passes of a given length stay so, and what does not fit is said so") {
  const Planned model;
  const PassChoice given = model.choose(80 * kGiB, 4096);
  CHECK(given.needs.pass_tokens == 4096);
  CHECK(given.longest_tokens == 65536);
  const PassChoice without_tower = model.choose(sum_of(given.needs), 4096);
  CHECK(without_tower.fits);
  CHECK_FALSE(without_tower.tower_fits);
  CHECK(without_tower.longest_tokens == 4096);
  const PassChoice none = model.choose(20 * kGiB);
  CHECK_FALSE(none.fits);
  CHECK(none.longest_tokens == 0);
}

}  // namespace
}  // namespace treble
