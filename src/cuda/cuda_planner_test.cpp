#include "cuda/cuda_planner.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "cuda/memory_sizes.h"

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

LinearWeight int8_weight(CudaPlanner& planner, std::int64_t out_features, std::int64_t in_features) {
  LinearWeight made{.format = WeightFormat::kInt8};
  made.weight = view(planner, DType::kI8, {out_features, in_features});
  made.int8.row_scale = view(planner, DType::kF32, {out_features});
  made.int8.rotation_group = 256;
  return made;
}

TEST_CASE("cuda planner: what only INT8 Linears read is held as codes, and its plain form while it is made") {
  CudaPlanner planner({});
  constexpr std::int64_t kTokens = 64;
  const LinearWeight gate = int8_weight(planner, 512, 256), up = int8_weight(planner, 512, 256),
                     down = int8_weight(planner, 256, 512), dense = weight(planner, 48, 256);
  Workspace workspace(planner.memory());
  const LinearInput input = planner.linear_input(workspace, kTokens, {&gate, &up}),
                    inner = planner.linear_input(workspace, kTokens, {&down}),
                    mixed = planner.linear_input(workspace, kTokens, {&gate, &dense});
  CHECK(!input.plain);
  CHECK(!inner.plain);
  CHECK(mixed.plain);
  CHECK(mixed.quantized);
  CHECK(workspace.peak_bytes() == kTokens * (256 + 4) + kTokens * (512 + 4) + kTokens * (256 + 4 + 2 * 256));

  const TensorView rows = view(planner, DType::kBF16, {kTokens, 256});
  const auto gain = [&](std::int64_t size) { return view(planner, DType::kBF16, {size}); };
  planner.rms_norm({.x = rows, .weight = gain(256), .eps = 1e-6f, .out = input});
  CHECK(planner.needs().scratch == 0);  // the norm writes codes
  planner.layer_norm({.x = rows, .delta = {}, .weight = gain(256), .bias = gain(256), .eps = 1e-6f, .out = input});
  CHECK(planner.needs().scratch == kTokens * 256 * 2);
  planner.linear_swiglu({.input = input, .gate = &gate, .up = &up, .out = inner});
  CHECK(planner.needs().scratch == kTokens * 2 * 512 * 2);  // gate and up
}

TEST_CASE("cuda planner: a gated norm whose gate has rows of odd sizes leaves its codes to another kernel") {
  constexpr std::int64_t kTokens = 64, kHeads = 2, kDim = 128, kWidth = kHeads * kDim;
  for (const std::int64_t beside : {0, 8, 12}) {  // elements; 8 are 16 bytes
    CudaPlanner planner({});
    const LinearWeight next = int8_weight(planner, 16, kWidth);
    Workspace workspace(planner.memory());
    const LinearInput out = planner.linear_input(workspace, kTokens, {&next});
    const TensorView wide = view(planner, DType::kBF16, {kTokens, kWidth + beside});
    planner.gated_rms_norm({.x = view(planner, DType::kBF16, {kTokens, kHeads, kDim}),
                            .gate = wide.slice(1, 0, kWidth).reshape({kTokens, kHeads, kDim}),
                            .weight = view(planner, DType::kBF16, {kDim}),
                            .eps = 1e-6f,
                            .out = out});
    CHECK(planner.needs().scratch == (beside == 12 ? kTokens * kWidth * 2 : 0));
  }
}

TEST_CASE("cuda planner: an input is quantised once for all weights that read it alike") {
  CudaPlanner planner({});
  LinearWeight same = int8_weight(planner, 16, 512), again = int8_weight(planner, 16, 512),
               other = int8_weight(planner, 16, 512);
  other.int8.rotation_group = 64;
  const auto out = [&] { return view(planner, DType::kBF16, {8, 16}); };
  const std::array outputs = {Linear::Output{&same, out()}, Linear::Output{&again, out()},
                              Linear::Output{&other, out()}};
  const TensorView input = view(planner, DType::kBF16, {8, 512});
  planner.linear({.input = input, .outputs = std::span(outputs).first(2)});
  const std::size_t once = planner.needs().scratch;
  CHECK(once >= 8 * 512 + 8 * 4);
  planner.linear({.input = input, .outputs = outputs});
  CHECK(planner.needs().scratch == 2 * once);
}

TEST_CASE("cuda planner: rows of NF4 weights that one product reads are bf16 together, up to a limit") {
  LinearWeight nf4{.format = WeightFormat::kNf4};
  nf4.nf4.in_features = 1024;
  const auto scratch_of = [&](std::int64_t out_features, int num_outputs) {
    CudaPlanner planner({});
    nf4.nf4.out_features = out_features;
    std::vector<Linear::Output> outputs;
    for (int i = 0; i < num_outputs; ++i) outputs.push_back({&nf4, view(planner, DType::kBF16, {8, out_features})});
    planner.linear({.input = view(planner, DType::kBF16, {8, 1024}), .outputs = outputs});
    return planner.needs().scratch;
  };
  CHECK(scratch_of(4096, 1) == 4096 * 1024 * 2);
  CHECK(scratch_of(4096, 3) == 3 * 4096 * 1024 * 2);
  CHECK(scratch_of(1 << 20, 1) == kNf4RowBytes);
}

TEST_CASE("cuda planner: SwiGLU of NF4 weights needs both as bf16, and on Hopper nothing else") {
  LinearWeight gate{.format = WeightFormat::kNf4};
  gate.nf4.in_features = 512, gate.nf4.out_features = 2048;
  const LinearWeight up = gate;
  for (const int compute_capability : {80, 90}) {
    CudaPlanner planner({}, compute_capability);
    planner.linear_swiglu({.input = view(planner, DType::kBF16, {8, 512}),
                           .gate = &gate,
                           .up = &up,
                           .out = view(planner, DType::kBF16, {8, 2048})});
    CHECK(planner.needs().scratch == 2 * 2048 * 512 * 2 + (compute_capability == 90 ? 0 : 2 * 8 * 2048 * 2));
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
