#include "engine/profiled_ops.h"

#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <vector>

#include "engine/backend.h"
#include "tensor/bfloat16.h"

using namespace treble;

TEST_CASE("profiled ops: results are those of the operations inside, and calls are counted by name and size") {
  const auto plain = make_ops("cpu", Precision::kF32);
  ProfiledOps profiled(make_ops("cpu", Precision::kF32));
  CHECK(profiled.name() == plain->name());
  std::vector<bfloat16> weight_values(2 * 3, to_bfloat16(0.5f));
  LinearWeight weight;
  weight.weight = TensorView(weight_values.data(), DType::kBF16, {2, 3});
  std::array<float, 3> input = {1, 2, 3};
  std::array<std::array<float, 2>, 2> out{};
  for (const bool is_profiled : {false, true}) {
    Ops& ops = is_profiled ? profiled : *plain;
    const Linear::Output output{&weight, TensorView(out[is_profiled].data(), DType::kF32, {1, 2})};
    ops.linear({.input = TensorView(input.data(), DType::kF32, {1, 3}), .outputs = {&output, 1}});
  }
  CHECK(out[1] == out[0]);
  CHECK(out[1][0] == 3.0f);

  TensorView x(input.data(), DType::kF32, {1, 3});
  profiled.gelu({.x = x, .form = GeluForm::kTanh});
  profiled.gelu({.x = x, .form = GeluForm::kTanh});
  const std::vector<OpTime> times = profiled.times();
  REQUIRE(times.size() == 2);
  for (const OpTime& op : times) {
    CHECK(op.calls == (op.name == "gelu" ? 2 : 1));
    CHECK((op.name == "gelu" || op.name == "linear 3 -> 2 bf16"));
    CHECK(op.ms >= 0);
  }
  profiled.reset();
  CHECK(profiled.times().empty());
}
