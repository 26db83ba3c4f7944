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

TEST_CASE("read_int8: formats and products that are not implemented are refused") {
  for (const char* text : {R"({"format": "float8_e4m3fn"})", R"({"full_precision_matrix_mult": true})"}) {
    Module module = rotated();
    module.put("comfy_quant", DType::kU8, text);
    CHECK(error_of(module) != "no error");
  }
}

}  // namespace
}  // namespace treble
