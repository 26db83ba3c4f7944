#include "quant/read_fp8.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "quant/testing/module.h"

namespace treble {
namespace {

using testing::contains;
using testing::Module;

/// [130, 200]: two blocks of rows by two of inputs. Row r, input i has the code (r + i) % 127.
Module module_with(const char* scale, std::vector<std::int64_t> shape, std::vector<float> scales) {
  Module out;
  std::string codes;
  for (int row = 0; row < 130; ++row)
    for (int i = 0; i < 200; ++i) codes += static_cast<char>((row + i) % 127);
  out.put("weight", DType::kF8E4M3, {130, 200}, codes);
  out.put(scale, DType::kF32, std::move(shape),
          std::string(reinterpret_cast<const char*>(scales.data()), 4 * scales.size()));
  return out;
}

/// What a code stands for by the definition of E4M3.
float value_of(int code) {
  const int exponent = code >> 3, mantissa = code & 7;
  return exponent == 0 ? static_cast<float>(mantissa) / 512
                       : std::exp2(static_cast<float>(exponent - 7)) * (1 + static_cast<float>(mantissa) / 8);
}

template <typename ScaleAt>
void check_weights(Module& module, const ScaleAt& scale_at) {
  ModuleTensors tensors = module.tensors();
  const LinearWeight linear = read_fp8(tensors);
  CHECK(linear.format == WeightFormat::kDense);
  int num_wrong = 0;
  for (int row = 0; row < 130; ++row) {
    for (int i = 0; i < 200; ++i) {
      const bfloat16 expected = to_bfloat16(value_of((row + i) % 127) * scale_at(row, i));
      num_wrong += linear.weight.as<bfloat16>()[row * 200 + i].bits != expected.bits;
    }
  }
  CHECK(num_wrong == 0);
}

std::string error_of(Module& module) {
  ModuleTensors tensors = module.tensors();
  return testing::error_of([&] { read_fp8(tensors); });
}

TEST_CASE("read_fp8: weights are code times scale, rounded once: one scale, one a row, one a block") {
  Module single = module_with("weight_scale", {1}, {0.37f});
  check_weights(single, [](int, int) { return 0.37f; });
  std::vector<float> rows;
  for (int row = 0; row < 130; ++row) rows.push_back(0.01f * static_cast<float>(row + 1));
  Module per_row = module_with("weight_scale", {130, 1}, rows);
  check_weights(per_row, [&](int row, int) { return rows[static_cast<std::size_t>(row)]; });
  for (const char* name : {"weight_scale", "weight_scale_inv"}) {
    Module blocks = module_with(name, {2, 2}, {0.1f, 0.2f, 0.3f, 0.4f});
    check_weights(blocks, [](int row, int i) { return row < 128 ? (i < 128 ? 0.1f : 0.2f) : (i < 128 ? 0.3f : 0.4f); });
  }
}

TEST_CASE("read_fp8: negative codes are the negatives of the others") {
  Module module;
  module.put("weight", DType::kF8E4M3, {1, 4}, "\x38\xb8\x7e\xfe");
  module.put_floats("weight_scale", {1});
  ModuleTensors tensors = module.tensors();
  const LinearWeight linear = read_fp8(tensors);
  const bfloat16* w = linear.weight.as<bfloat16>();
  CHECK(to_float(w[0]) == 1.0f);
  CHECK(to_float(w[1]) == -1.0f);
  CHECK(to_float(w[2]) == 448.0f);
  CHECK(to_float(w[3]) == -448.0f);
}

TEST_CASE("read_fp8: what cannot be right is refused with what it is") {
  Module shape = module_with("weight_scale", {3, 2}, {1, 1, 1, 1, 1, 1});
  CHECK(contains(error_of(shape), "[3, 2] f32"));
  Module zero = module_with("weight_scale", {2, 2}, {1, 0, 1, 1});
  CHECK(contains(error_of(zero), "weight_scale at 1"));
  Module none = module_with("other", {1}, {1});
  CHECK(contains(error_of(none), "weight_scale"));
  Module left_over = module_with("weight_scale", {1}, {1});
  left_over.put_floats("weight_zero_point", {1});
  CHECK(contains(error_of(left_over), "weight_zero_point"));
  Module nan = module_with("weight_scale", {1}, {1});
  nan.bytes.at("weight")[300] = '\x7f';
  CHECK(contains(error_of(nan), "not a number"));
}

}  // namespace
}  // namespace treble
