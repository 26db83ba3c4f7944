#include "cuda/cuda_planner.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>

namespace treble::cuda {
namespace {

TensorView view(CudaPlanner& planner, DType dtype, std::initializer_list<std::int64_t> shape) {
  return TensorView(planner.memory().allocate(1), dtype, shape);
}

LinearWeight weight(CudaPlanner& planner, std::int64_t out_features, std::int64_t in_features) {
  LinearWeight made;
  made.weight = view(planner, DType::kBF16, {out_features, in_features});
  return made;
}

TEST_CASE("cuda planner: weights are counted as the arena places them, tables where they will lie") {
  constexpr std::size_t kChunk = std::size_t{64} << 20;
  for (const bool on_device : {false, true}) {
    CudaPlanner planner({.tables_on_device = on_device});
    CHECK(planner.needs().weights == 0);
    planner.place_weight(view(planner, DType::kBF16, {3}));
    CHECK(planner.needs().weights == kChunk);
    planner.place_weight(view(planner, DType::kBF16, {static_cast<std::int64_t>(kChunk) / 2 - 128}));
    CHECK(planner.needs().weights == kChunk);  // 256 bytes, and the rest of the chunk to the byte
    planner.place_table(view(planner, DType::kBF16, {1024, 1024}));
    CHECK(planner.needs().weights == (on_device ? 2 : 1) * kChunk);
    CHECK(planner.needs().tables == (on_device ? std::size_t{2} << 20 : 0));
    CHECK(planner.needs().host_tables == (on_device ? 0 : std::size_t{2} << 20));
  }
}

TEST_CASE("cuda planner: bf16 products need no scratch, nor few fp32 rows; many become two bf16 terms") {
  CudaPlanner planner({.activation_dtype = DType::kBF16});
  const LinearWeight linear = weight(planner, 256, 128);
  Linear::Output output{&linear, view(planner, DType::kBF16, {64, 256})};
  planner.linear({.input = view(planner, DType::kBF16, {64, 128}), .outputs = {&output, 1}});
  CHECK(planner.needs().scratch == 0);
  output.out = view(planner, DType::kF32, {64, 256});
  planner.linear({.input = view(planner, DType::kF32, {64, 128}), .outputs = {&output, 1}});
  CHECK(planner.needs().scratch == 0);
  output.out = view(planner, DType::kF32, {300, 256});
  planner.linear({.input = view(planner, DType::kF32, {300, 128}), .outputs = {&output, 1}});
  CHECK(planner.needs().scratch == 2 * 300 * 128 * 2);
}

TEST_CASE("cuda planner: SwiGLU holds gate and up at once, and calls that follow use the same scratch") {
  CudaPlanner planner({});
  const LinearWeight gate = weight(planner, 256, 128), up = weight(planner, 256, 128);
  for (int i = 0; i < 2; ++i) {
    planner.linear_swiglu({.input = view(planner, DType::kBF16, {64, 128}),
                           .gate = &gate,
                           .up = &up,
                           .out = view(planner, DType::kBF16, {64, 256})});
    CHECK(planner.needs().scratch == 64 * 2 * 256 * 2);
  }
}

TEST_CASE("cuda planner: SwiGLU needs no scratch where it is one kernel") {
  for (const KernelSet kernels : {KernelSet::kBest, KernelSet::kSm80}) {
    CudaPlanner planner({.kernels = kernels}, 90);
    const LinearWeight gate = weight(planner, 256, 128), up = weight(planner, 256, 128);
    planner.linear_swiglu({.input = view(planner, DType::kBF16, {64, 128}),
                           .gate = &gate,
                           .up = &up,
                           .out = view(planner, DType::kBF16, {64, 256})});
    CHECK((planner.needs().scratch == 0) == (kernels == KernelSet::kBest));
  }
}

TEST_CASE("cuda planner: a chunk of the delta rule never holds two sequences") {
  CudaPlanner planner({});
  std::array<std::int32_t, 4> borders = {0, 65, 66, 67};  // two chunks, one, one
  const auto heads = [&](std::int64_t count) { return view(planner, DType::kBF16, {67, count, 128}); };
  planner.gated_delta_rule({.query = heads(2),
                            .key = heads(2),
                            .value = heads(6),
                            .out = heads(6),
                            .log_decay = view(planner, DType::kF32, {67, 6}),
                            .beta = view(planner, DType::kF32, {67, 6}),
                            .recurrent_state = {},
                            .cu_seqlens = TensorView(borders.data(), DType::kI32, {4}),
                            .scale = 1});
  // Keys and queries for two key heads, triangles and gates for six value heads.
  CHECK(planner.needs().scratch == 4 * (2 * 4 * 64 * 64 * 2 + 6 * (2 * 64 * 64 * 2 + 2 * 64 * 4)));
}

}  // namespace
}  // namespace treble::cuda
