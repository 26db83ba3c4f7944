#include "quant/read_int8.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "quant/testing/module.h"

namespace treble {
namespace {

using testing::contains;
using testing::Module;

constexpr const char* kRotated = R"({"format": "int8_tensorwise", "convrot": true, "convrot_groupsize": 16})";

/// A [3, 32] weight, rotated in groups of 16.
Module rotated() {
  Module out;
  out.put("weight", DType::kI8, {3, 32}, std::string(96, '\x05'));
  out.put_floats("weight_scale", {0.5f, 0.25f, 2.0f});
  out.put("comfy_quant", DType::kU8, std::string(kRotated) + std::string(3, '\0'));
  return out;
}

LinearWeight read(Module& module, const Json* config = nullptr) {
  ModuleTensors tensors = module.tensors();
  LinearWeight linear = read_int8(tensors, config);
  // What was copied is gone with the tensors; keep it for the test.
  static std::vector<std::shared_ptr<const void>> storage;
  storage.insert(storage.end(), tensors.storage().begin(), tensors.storage().end());
  return linear;
}

std::string error_of(Module& module, const Json* config = nullptr) {
  return testing::error_of([&] { read(module, config); });
}

std::vector<float> floats(const TensorView& view) {
  return {view.as<float>(), view.as<float>() + view.num_elements()};
}

TEST_CASE("read_int8: codes are used where they lie, scales and rotation are the file's") {
  Module module = rotated();
  const LinearWeight linear = read(module);
  CHECK(linear.format == WeightFormat::kInt8);
  CHECK(linear.weight.data() == static_cast<void*>(module.bytes.at("weight").data()));
  CHECK(linear.out_features() == 3);
  CHECK(linear.int8.rotation_group == 16);
  CHECK(floats(linear.int8.row_scale) == std::vector<float>{0.5f, 0.25f, 2.0f});
  CHECK(!linear.bias);
  CHECK(floats(linear.rows(1, 3).int8.row_scale) == std::vector<float>{0.25f, 2.0f});
}

TEST_CASE("read_int8: one scale stands for all rows, and scales in 16 bits are widened") {
  Module one = rotated();
  one.put_floats("weight_scale", {0.5f});
  CHECK(floats(read(one).int8.row_scale) == std::vector<float>(3, 0.5f));
  Module halves = rotated();
  halves.put("weight_scale", DType::kBF16, {3, 1}, std::string("\x80\x3f\x00\x40\x80\x3e", 6));
  CHECK(floats(read(halves).int8.row_scale) == std::vector<float>{1, 2, 0.25f});
}

TEST_CASE("read_int8: scales, codes and biases are found under every name in use") {
  for (const char* name : {"scale_weight", "weight_scales", "scale", "scales", "w_scale", "qscale"}) {
    Module module = rotated();
    module.erase("weight_scale");
    module.put_floats(name, {1, 2, 3});
    CHECK(floats(read(module).int8.row_scale) == std::vector<float>{1, 2, 3});
  }
  for (const char* name : {"qweight", "weight_qdata", "weight_int8", "qdata"}) {
    Module module = rotated();
    module.erase("weight");
    module.put(name, DType::kI8, {3, 32}, std::string(96, '\x01'));
    CHECK(read(module).in_features() == 32);
  }
  for (const char* name : {"bias", "bias_correction", "output_bias", "out_bias", "calibrated_bias", "correction"}) {
    Module module = rotated();
    module.put_floats(name, {1, 2, 3});
    CHECK(floats(read(module).bias) == std::vector<float>{1, 2, 3});
  }
}

TEST_CASE("read_int8: two biases are one if they are equal or one is zero, and an error otherwise") {
  Module equal = rotated();
  equal.put_floats("bias", {1, 2, 3});
  equal.put_floats("calibrated_bias", {1, 2, 3});
  CHECK(floats(read(equal).bias) == std::vector<float>{1, 2, 3});
  Module zero = rotated();
  zero.put_floats("bias", {0, 0, 0});
  zero.put_floats("correction", {1, 2, 3});
  CHECK(floats(read(zero).bias) == std::vector<float>{1, 2, 3});
  Module different = rotated();
  different.put_floats("bias", {1, 2, 3});
  different.put_floats("correction", {1, 2, 4});
  CHECK(contains(error_of(different), "correction"));
}

TEST_CASE("read_int8: the description may be nested, lack its format, or stand in the file's header") {
  for (const char* text :
       {R"({"params": {"convrot": true, "convrot_groupsize": 4}})", R"({"convrot": true, "convrot_groupsize": 4})"}) {
    Module module = rotated();
    module.put("comfy_quant", DType::kU8, text);
    CHECK(read(module).int8.rotation_group == 4);
  }
  Module module = rotated();
  module.erase("comfy_quant");
  const Json config = parse_json(kRotated, "test", ErrorCode::kCheckpoint);
  CHECK(read(module, &config).int8.rotation_group == 16);
  CHECK(contains(error_of(module), "comfy_quant"));
}

TEST_CASE("read_int8: without convrot inputs are not rotated, without a size groups are of 256") {
  Module plain = rotated();
  plain.put("comfy_quant", DType::kU8, R"({"format": "int8_tensorwise", "convrot": false, "convrot_groupsize": 16})");
  CHECK(read(plain).int8.rotation_group == 1);
  Module usual = rotated();
  usual.put("comfy_quant", DType::kU8, R"({"convrot": true})");
  CHECK(contains(error_of(usual), "groups of 256"));
  usual.put("weight", DType::kI8, {3, 512}, std::string(1536, '\x05'));
  CHECK(read(usual).int8.rotation_group == 256);
}

TEST_CASE("read_int8: a description that says nothing of a rotation, or speaks of other arithmetic, is refused") {
  for (const char* text : {"{}", R"({"params": {}})", R"({"convrot_groupsize": 16})"}) {
    Module module = rotated();
    module.put("comfy_quant", DType::kU8, text);
    CHECK(contains(error_of(module), "does not say whether it is rotated"));
  }
  for (const char* text :
       {R"({"convrot": false, "zero_point": 3})", R"({"params": {"convrot": false, "zero_point": 3}})"}) {
    Module module = rotated();
    module.put("comfy_quant", DType::kU8, text);
    CHECK(contains(error_of(module), "\"zero_point\""));
  }
  Module module = rotated();
  module.put(
      "comfy_quant", DType::kU8,
      R"({"format": "int8_tensorwise", "per_row": true, "orig_dtype": "torch.bfloat16", "calibrated": "set B"})");
  CHECK(read(module).int8.rotation_group == 1);
}

TEST_CASE("read_int8: factors of the inputs that are 0, negative or not finite are refused") {
  for (const float factor : {0.0f, -1.0f, std::numeric_limits<float>::quiet_NaN()}) {
    Module module = rotated();
    std::vector<float> factors(32, 1.0f);
    factors[7] = factor;
    module.put_floats("pre_quant_scale", factors);
    CHECK(contains(error_of(module), "pre_quant_scale at 7"));
  }
}

TEST_CASE("read_int8: at the depth of the layout, values are not looked at, and shapes are checked all the same") {
  Module module = rotated();
  module.put_floats("weight_scale", {0, 0, 0});
  const auto read_layout = [&] {
    ModuleTensors tensors = module.tensors(ReadDepth::kLayout);
    const LinearWeight linear = read_int8(tensors, nullptr);
    CHECK(linear.out_features() == 3);
    CHECK(linear.int8.rotation_group == 16);
  };
  CHECK(testing::error_of(read_layout) == "no error");
  module.put_floats("bias", {1, 2});
  CHECK(contains(testing::error_of(read_layout), "bias of [2] f32"));
}

TEST_CASE("read_int8: a group that is no power of four or does not divide the inputs is refused") {
  for (const char* group : {"0", "-4", "8", "32", "64", "1.5", "\"16\""}) {
    Module module = rotated();
    module.put("comfy_quant", DType::kU8, std::string(R"({"convrot": true, "convrot_groupsize": )") + group + "}");
    CAPTURE(group);
    CHECK(error_of(module) != "no error");
  }
}

TEST_CASE("read_int8: a scale of zero, a negative one and one that is not finite are refused") {
  for (const float scale : {0.0f, -0.5f, std::numeric_limits<float>::quiet_NaN(), INFINITY}) {
    Module module = rotated();
    module.put_floats("weight_scale", {1.0f, scale, 1.0f});
    CHECK(contains(error_of(module), "weight_scale at 1"));
  }
}

TEST_CASE("read_int8: scales and biases of another number than the rows are refused with their shape") {
  Module scales = rotated();
  scales.put_floats("weight_scale", {1, 2});
  CHECK(contains(error_of(scales), "[2] f32"));
  Module biases = rotated();
  biases.put_floats("bias", {1, 2, 3, 4});
  CHECK(contains(error_of(biases), "[4] f32"));
}

TEST_CASE("read_int8: what is missing is named, and so is what nothing reads") {
  Module scales = rotated();
  scales.erase("weight_scale");
  CHECK(contains(error_of(scales), "weight_scale"));
  for (const char* name : {"weight_scale_2", "zero_point", "svd_up", "weight_codebook"}) {
    Module module = rotated();
    module.put_floats(name, {1, 2, 3});
    CHECK(contains(error_of(module), name));
  }
  Module cut = rotated();
  cut.put("comfy_quant", DType::kU8, R"({"format": "int8_ten)");
  CHECK(contains(error_of(cut), "comfy_quant"));
}

TEST_CASE("read_int8: a factor of the inputs is read, a fixed scale of theirs is not needed") {
  Module module = rotated();
  module.put_floats("pre_quant_scale", std::vector<float>(32, 1.5f));
  module.put_floats("input_scale", {1.0f});
  CHECK(floats(read(module).int8.input_factor) == std::vector<float>(32, 1.5f));
}

/// A [2, 2, 4] weight of two fused projections whose rows lie in turns: first, second, first, second.
Module paired() {
  Module out;
  out.put("weight", DType::kI8, {2, 2, 4}, std::string("\1\1\1\1\2\2\2\2\3\3\3\3\4\4\4\4", 16));
  out.put_floats("weight_scale", {1, 2, 3, 4});
  out.put("weight_scale", DType::kF32, {2, 2, 1}, out.bytes.at("weight_scale"));
  out.put_floats("bias", {10, 20, 30, 40});
  out.put("bias", DType::kF32, {2, 2}, out.bytes.at("bias"));
  out.put("comfy_quant", DType::kU8, R"({"format": "int8_tensorwise", "convrot": true, "convrot_groupsize": 4})");
  return out;
}

TEST_CASE("read_int8: two projections whose rows lie in turns become one after the other, with scales and biases") {
  Module module = paired();
  const LinearWeight linear = read(module);
  CHECK(linear.weight.describe() == "[4, 4] i8");
  for (std::int64_t row = 0; row < 4; ++row)
    CHECK(linear.weight.as<std::int8_t>()[row * 4 + row] ==
          std::vector<int>{1, 3, 2, 4}[static_cast<std::size_t>(row)]);
  CHECK(floats(linear.int8.row_scale) == std::vector<float>{1, 3, 2, 4});
  CHECK(floats(linear.bias) == std::vector<float>{10, 30, 20, 40});
  CHECK(linear.int8.rotation_group == 4);

  Module one_scale = paired();
  one_scale.put_floats("weight_scale", {0.5f});
  CHECK(floats(read(one_scale).int8.row_scale) == std::vector<float>(4, 0.5f));
}

TEST_CASE("read_int8: scales of paired rows that do not say whose they are are refused, and so are other ranks") {
  for (const char* name : {"weight_scale", "bias"}) {
    Module module = paired();
    module.put_floats(name, {1, 2, 3, 4});
    CHECK(contains(error_of(module), std::string("has a ") + name + " of [4] f32"));
  }
  Module triples = paired();
  triples.put("weight", DType::kI8, {1, 4, 4}, triples.bytes.at("weight"));
  CHECK(contains(error_of(triples), "[1, 4, 4] i8"));
  Module flat = paired();
  flat.put("weight", DType::kI8, {16}, flat.bytes.at("weight"));
  CHECK(contains(error_of(flat), "[16] i8"));
  Module empty = paired();
  empty.put("weight", DType::kI8, {0, 4}, "");
  CHECK(contains(error_of(empty), "[0, 4] i8"));
}

TEST_CASE("read_int8: a weight is transposed only where its description says so and its sizes differ") {
  Module module = rotated();
  std::string columns;
  for (char k = 0; k < 32; ++k) columns += {k, static_cast<char>(k + 40), static_cast<char>(k + 80)};
  module.put("weight", DType::kI8, {32, 3}, columns);
  module.put("comfy_quant", DType::kU8, R"({"convrot": true, "convrot_groupsize": 16, "transposed": true})");
  const LinearWeight linear = read(module);
  CHECK(linear.weight.describe() == "[3, 32] i8");
  for (std::int64_t o = 0; o < 3; ++o)
    for (std::int64_t k = 0; k < 32; ++k) CHECK(linear.weight.as<std::int8_t>()[o * 32 + k] == k + 40 * o);
  CHECK(floats(linear.int8.row_scale) == std::vector<float>{0.5f, 0.25f, 2.0f});

  module.put("comfy_quant", DType::kU8, kRotated);  // then its 32 rows lack scales
  CHECK(error_of(module) != "no error");
  Module square = rotated();
  square.put("weight", DType::kI8, {16, 16}, std::string(256, '\1'));
  square.put_floats("weight_scale", {1});
  square.put("comfy_quant", DType::kU8, R"({"convrot": false, "transposed": true})");
  CHECK(contains(error_of(square), "calls transposed"));
  Module both = paired();
  both.put("comfy_quant", DType::kU8, R"({"convrot": false, "transposed": true})");
  CHECK(contains(error_of(both), "expected two dimensions"));
}

/// The bf16 numbers of a compressed-tensors module.
std::vector<float> read_weights(Module& module) {
  ModuleTensors tensors = module.tensors();
  const LinearWeight linear = read_int_quantized(tensors);
  CHECK(linear.format == WeightFormat::kDense);
  std::vector<float> out;
  for (std::int64_t i = 0; i < linear.weight.num_elements(); ++i)
    out.push_back(to_float(linear.weight.as<bfloat16>()[i]));
  return out;
}

Module compressed() {
  Module out;
  out.put("weight", DType::kI8, {2, 3}, std::string("\1\2\x7f\xff\x80\0", 6));
  out.put("weight_scale", DType::kBF16, {2, 1}, std::string("\x00\x3f\x80\x3f", 4));  // 0.5, 1
  return out;
}

TEST_CASE("read_int_quantized: weights are codes times their row's scale, in bf16") {
  Module module = compressed();
  module.put_floats("input_scale", {3});
  module.put("weight_zero_point", DType::kI8, {2, 1}, std::string(2, '\0'));
  CHECK(read_weights(module) == std::vector<float>{0.5f, 1, 63.5f, -1, -128, 0});
  module.put_floats("weight_scale", {1.0f / 3});
  CHECK(read_weights(module)[0] == to_float(to_bfloat16(1.0f / 3)));
}

TEST_CASE("read_int_quantized: what is asymmetric, grouped, missing or unknown is refused") {
  const auto error_with = [](const char* name, DType dtype, std::vector<std::int64_t> shape, const std::string& bytes) {
    Module module = compressed();
    module.put(name, dtype, std::move(shape), bytes);
    return testing::error_of([&] { read_weights(module); });
  };
  CHECK(contains(error_with("weight_zero_point", DType::kI8, {2, 1}, std::string("\0\1", 2)), "weight_zero_point"));
  CHECK(contains(error_with("weight_scale", DType::kBF16, {2, 3}, std::string(12, '\x3f')), "[2, 3] bf16"));
  CHECK(contains(error_with("weight_scale", DType::kBF16, {2, 1}, std::string(4, '\0')), "a scale is above 0"));
  CHECK(contains(error_with("weight", DType::kI8, {6}, std::string(6, '\1')), "[6] i8"));
  CHECK(contains(error_with("weight_g_idx", DType::kI32, {3}, std::string(12, '\0')), "weight_g_idx"));
  Module module = compressed();
  module.erase("weight_scale");
  CHECK(contains(testing::error_of([&] { read_weights(module); }), "weight_scale"));
}

TEST_CASE("read_int8: formats and products that are not implemented are refused") {
  for (const char* text : {R"({"format": "float8_e4m3fn"})", R"({"full_precision_matrix_mult": true})"}) {
    Module module = rotated();
    module.put("comfy_quant", DType::kU8, text);
    CHECK(error_of(module) != "no error");
  }
}

}  // namespace
}  // namespace treble
