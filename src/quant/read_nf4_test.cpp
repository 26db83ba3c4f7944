#include "quant/read_nf4.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "quant/testing/module.h"

namespace treble {
namespace {

using testing::contains;
using testing::Module;

constexpr std::string_view kState = "weight.quant_state.bitsandbytes__nf4";
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

constexpr std::array<float, 16> kCodeValues = {-1.0f,
                                               -0.6961928009986877f,
                                               -0.5250730514526367f,
                                               -0.39491748809814453f,
                                               -0.28444138169288635f,
                                               -0.18477343022823334f,
                                               -0.09105003625154495f,
                                               0.0f,
                                               0.07958029955625534f,
                                               0.16093020141124725f,
                                               0.24611230194568634f,
                                               0.33791524171829224f,
                                               0.44070982933044434f,
                                               0.5626170039176941f,
                                               0.7229568362236023f,
                                               1.0f};

/// A [6, 20] weight in blocks of 64: 60 bytes of codes, two blocks, the second one short.
Module single() {
  Module out;
  out.put("weight", DType::kU8, std::string(60, '\x7f'));
  out.put_floats("weight.absmax", {2.0f, 0.5f});
  out.put_floats("weight.quant_map", {kCodeValues.begin(), kCodeValues.end()});
  out.put(kState, DType::kU8, R"({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [6, 20]})");
  return out;
}

Module nested() {
  Module out = single();
  out.put("weight.absmax", DType::kU8, std::string("\x00\xff", 2));
  std::vector<float> map(256);
  for (std::size_t i = 0; i < 256; ++i) map[i] = static_cast<float>(i) / 255;
  out.put_floats("weight.nested_quant_map", map);
  out.put_floats("weight.nested_absmax", {3.0f});
  out.put(kState, DType::kU8,
          R"({"quant_type": "nf4", "blocksize": 64, "dtype": "float16", "shape": [6, 20],)"
          R"( "nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": 0.25})");
  return out;
}

/// What read_nf4() says against a module.
std::string error_of(Module& module) {
  ModuleTensors tensors = module.tensors();
  return testing::error_of([&] { read_nf4(tensors); });
}

TEST_CASE("read_nf4: shape, dtype and block size are those of the JSON, scales those of the file") {
  Module module = single();
  ModuleTensors tensors = module.tensors();
  const LinearWeight linear = read_nf4(tensors);
  CHECK(linear.format == WeightFormat::kNf4);
  CHECK(linear.out_features() == 6);
  CHECK(linear.in_features() == 20);
  CHECK(linear.nf4.dtype == DType::kBF16);
  CHECK(linear.nf4.absmax_of(0) == 2.0f);
  CHECK(linear.nf4.absmax_of(1) == 0.5f);
  CHECK(linear.weight.data() == static_cast<void*>(module.bytes.at("weight").data()));
}

TEST_CASE("read_nf4: doubly quantised scales are looked up, scaled and shifted") {
  Module module = nested();
  ModuleTensors tensors = module.tensors();
  const LinearWeight linear = read_nf4(tensors);
  CHECK(linear.nf4.dtype == DType::kF16);
  CHECK(linear.nf4.absmax_of(0) == 0.25f);
  CHECK(linear.nf4.absmax_of(1) == 3.25f);
}

TEST_CASE("read_nf4: codes stored as another type are the same bytes") {
  Module module = single();
  module.put("weight", DType::kBF16, module.bytes.at("weight"));
  ModuleTensors tensors = module.tensors();
  CHECK(read_nf4(tensors).weight.describe() == "[60] u8");
}

TEST_CASE("read_nf4: rows of a weight begin where the rows before them end, whatever the blocks") {
  Module module = single();
  ModuleTensors tensors = module.tensors();
  const LinearWeight rows = read_nf4(tensors).rows(1, 5).rows(2, 3);
  CHECK(rows.out_features() == 1);
  CHECK(rows.nf4.first_element == 60);
}

TEST_CASE("read_nf4: a bias that the format's own layout lacks is read all the same") {
  Module module = single();
  module.put_floats("bias", {0, 1, 2, 3, 4, 5});
  ModuleTensors tensors = module.tensors();
  const LinearWeight linear = read_nf4(tensors);
  REQUIRE(linear.bias);
  CHECK(to_float(linear.bias.as<bfloat16>()[5]) == 5.0f);
}

TEST_CASE("read_nf4: a shape that contradicts the bytes is an error with both") {
  Module module = single();
  module.put(kState, DType::kU8, R"({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [6, 21]})");
  CHECK(contains(error_of(module), "has 60 bytes of codes, [6, 21] needs 63"));
}

TEST_CASE("read_nf4: a file cut short is an error that names the tensor") {
  for (const auto& [name, keep] : {std::pair<std::string, std::size_t>{"weight", 59},
                                   {"weight.absmax", 4},
                                   {"weight.quant_map", 60},
                                   {std::string(kState), 40}}) {
    CAPTURE(name);
    Module module = single();
    const DType dtype = module.views.at(name).dtype();
    module.put(name, dtype, module.bytes.at(name).substr(0, keep));
    CHECK(contains(error_of(module), name == "weight" ? "59 bytes of codes" : name));
  }
  Module module = nested();
  module.put_floats("weight.nested_absmax", {});
  CHECK(contains(error_of(module), "weight.nested_absmax"));
}

TEST_CASE("read_nf4: a missing tensor is named, and so is one that the format does not know") {
  for (const std::string name : {"weight", "weight.absmax", "weight.quant_map"}) {
    Module module = single();
    module.erase(name);
    CHECK(contains(error_of(module), "has no " + name));
  }
  for (const std::string name : {"weight.nested_absmax", "weight.nested_quant_map"}) {
    Module module = nested();
    module.erase(name);
    CHECK(contains(error_of(module), "has no " + name));
  }
  Module module = single();
  module.put_floats("weight.nested_absmax", {1});  // and no nested_blocksize in the JSON
  CHECK(contains(error_of(module), "weight.nested_absmax"));
}

TEST_CASE("read_nf4: scales that are negative or not finite are refused") {
  Module negative = single();
  negative.put_floats("weight.absmax", {1.0f, -1.0f});
  CHECK(contains(error_of(negative), "weight.absmax"));
  for (const char* name : {"weight.absmax", "weight.quant_map", "bias"}) {
    Module module = single();
    module.put_floats(name, std::vector<float>(std::string_view(name) == "weight.absmax" ? 2 : 16, kNan));
    CHECK(contains(error_of(module), name));
  }
  for (const char* name : {"weight.nested_absmax", "weight.nested_quant_map"}) {
    Module module = nested();
    module.put_floats(name, std::vector<float>(std::string_view(name) == "weight.nested_absmax" ? 1 : 256, kNan));
    CHECK(contains(error_of(module), name));
  }
}

TEST_CASE("read_nf4: double quantisation whose scales would be negative is refused") {
  Module offset = nested();
  const std::string state = offset.bytes.at(std::string(kState));
  const auto with_offset = [&](const char* number) {
    std::string changed = state;
    changed.replace(changed.find("0.25"), 4, number);
    return changed;
  };
  offset.put(kState, DType::kU8, with_offset("-5.0"));
  CHECK(contains(error_of(offset), "nested_offset -5 does not belong to its weight.absmax"));
  // The rounding of an 8-bit scale may take a small one below 0: the map has steps of 1 / 255 times 3.
  offset.put(kState, DType::kU8, with_offset("-0.01"));
  CHECK(error_of(offset) == "no error");
}

TEST_CASE("read_nf4: a map of scales with a value outside of -1 to 1, or out of order, is refused") {
  for (const float value : {5.0f, -1.5f, 0.9f}) {
    Module module = nested();
    std::memcpy(module.bytes.at("weight.nested_quant_map").data() + 4 * 3, &value, 4);
    CHECK(contains(error_of(module), "weight.nested_quant_map at "));
  }
}

TEST_CASE("read_nf4: at the depth of the layout, values are not looked at, and shapes are checked all the same") {
  Module module = nested();
  for (const char* name : {"weight.quant_map", "weight.nested_absmax"})
    std::fill(module.bytes.at(name).begin(), module.bytes.at(name).end(), '\xff');  // NaN
  const auto read_layout = [&] {
    ModuleTensors tensors = module.tensors(ReadDepth::kLayout);
    const LinearWeight linear = read_nf4(tensors);
    CHECK(linear.out_features() == 6);
    CHECK(linear.in_features() == 20);
  };
  CHECK(testing::error_of(read_layout) == "no error");
  module.put_floats("weight.nested_absmax", {1, 2});
  CHECK(contains(testing::error_of(read_layout), "weight.nested_absmax of [2] f32"));
}

TEST_CASE("read_nf4: values of codes that are not NF4's are refused") {
  Module module = single();
  std::vector<float> fp4 = {kCodeValues.begin(), kCodeValues.end()};
  fp4[3] = 0.25f;
  module.put_floats("weight.quant_map", fp4);
  CHECK(contains(error_of(module), "weight.quant_map at 3"));
}

TEST_CASE("read_nf4: a JSON that asks for what there is not is refused with the field") {
  const std::array<std::pair<const char*, const char*>, 7> cases = {{
      {R"({"quant_type": "fp4", "blocksize": 64, "dtype": "bfloat16", "shape": [6, 20]})", "quant_type"},
      {R"({"quant_type": "nf4", "blocksize": 48, "dtype": "bfloat16", "shape": [6, 20]})", "blocksize"},
      {R"({"quant_type": "nf4", "blocksize": 0, "dtype": "bfloat16", "shape": [6, 20]})", "blocksize"},
      {R"({"quant_type": "nf4", "blocksize": 64, "dtype": "int8", "shape": [6, 20]})", "dtype"},
      {R"({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [120]})", "shape"},
      {R"({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [-6, -20]})", "shape"},
      {R"({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16"})", "shape"},
  }};
  for (const auto& [json, field] : cases) {
    Module module = single();
    module.put(kState, DType::kU8, json);
    CHECK(contains(error_of(module), field));
  }
}

}  // namespace
}  // namespace treble
