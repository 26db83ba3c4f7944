#include "engine/op_cost.h"

#include <doctest/doctest.h>

#include <array>

#include "tensor/counting_memory.h"

namespace treble {
namespace {

CountingMemory nowhere;

TensorView view(DType dtype, std::initializer_list<std::int64_t> shape) {
  return TensorView(nowhere.allocate(1), dtype, shape);
}

TEST_CASE("op cost: a product reads input and weights once, writes its outputs, and does 2 T N K") {
  LinearWeight weight;
  weight.weight = view(DType::kBF16, {32, 16});
  const Linear::Output output{&weight, view(DType::kF32, {5, 32})};
  const OpCost cost = cost_of(Linear{.input = view(DType::kBF16, {5, 16}), .outputs = {&output, 1}});
  CHECK(cost.bytes == 5 * 16 * 2 + 32 * 16 * 2 + 5 * 32 * 4);
  CHECK(cost.flops == 2 * 5 * 32 * 16);
}

TEST_CASE("op cost: causal attention counts the pairs that are read, and a few last queries all their keys") {
  std::array<std::int32_t, 3> whole = {0, 3, 5}, last = {0, 1, 2};
  const auto attention = [&](std::array<std::int32_t, 3>& queries, bool is_causal) {
    const TensorView q = view(DType::kBF16, {queries[2], 4, 8}), kv = view(DType::kBF16, {5, 2, 8});
    return cost_of(Attention{.query = q,
                             .key = kv,
                             .value = kv,
                             .gate = {},
                             .cu_seqlens_q = TensorView(queries.data(), DType::kI32, {3}),
                             .cu_seqlens_k = TensorView(whole.data(), DType::kI32, {3}),
                             .causal = is_causal,
                             .scale = 1,
                             .out = view(DType::kBF16, {queries[2], 32})});
  };
  CHECK(attention(whole, true).flops == 4 * (6 + 3) * 32);
  CHECK(attention(whole, false).flops == 4 * (9 + 4) * 32);
  CHECK(attention(last, true).flops == 4 * (3 + 2) * 32);
  CHECK(attention(whole, true).bytes == (5 * 32 + 2 * 5 * 16 + 5 * 32) * 2);
}

TEST_CASE("op cost: tables are read as far as rows are asked for") {
  const OpCost cost = cost_of(Embedding{
      .ids = view(DType::kI32, {3}), .table = view(DType::kBF16, {1000, 8}), .out = view(DType::kF32, {3, 8})});
  CHECK(cost.bytes == 3 * 4 + 3 * 8 * 2 + 3 * 8 * 4);
}

}  // namespace
}  // namespace treble
