#include "quant/encode_nf4.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "quant/read_nf4.h"
#include "quant/testing/module.h"

namespace treble {
namespace {

using testing::contains;
using testing::Module;
using testing::normal_numbers;

EncodedLinear encode(std::vector<float>& weight, std::int64_t out_features, const Nf4Encoding& encoding = {}) {
  const auto in_features = static_cast<std::int64_t>(weight.size()) / out_features;
  return encode_nf4(TensorView(weight.data(), DType::kF32, {out_features, in_features}), encoding, "q");
}

int code_at(const LinearWeight& linear, std::int64_t e) {
  const int byte = linear.weight.as<std::uint8_t>()[e / 2];
  return e % 2 == 0 ? byte >> 4 : byte & 15;
}

TEST_CASE("encode_nf4: a code is that of the value nearest to the weight over its block's largest magnitude") {
  // 5 x 100: blocks run across rows, and the last one is short.
  std::vector<float> weight = normal_numbers(500);
  const EncodedLinear encoded = encode(weight, 5, {.block_size = 64, .is_double = false});
  const LinearWeight& linear = encoded.linear;
  CHECK(linear.nf4.absmax.describe() == "[8] f32");
  CHECK(linear.weight.describe() == "[250] u8");
  for (std::int64_t e = 0; e < 500; ++e) {
    const float* block = weight.data() + e / 64 * 64;
    float absmax = 0;
    for (std::int64_t i = 0; i < std::min<std::int64_t>(64, 500 - e / 64 * 64); ++i)
      absmax = std::max(absmax, std::abs(block[i]));
    REQUIRE(linear.nf4.absmax_of(e / 64) == absmax);
    const double normalised = static_cast<double>(weight[static_cast<std::size_t>(e)]) / static_cast<double>(absmax);
    const auto distance = [&](float value) { return std::abs(static_cast<double>(value) - normalised); };
    const float chosen = kNf4Values[static_cast<std::size_t>(code_at(linear, e))];
    for (const float value : kNf4Values) CHECK(distance(chosen) <= distance(value) + 1e-7);
  }
}

TEST_CASE("encode_nf4: the even element is in the high half, zero is code 7, half-way is the smaller value") {
  const float half_way = (kNf4Values[8] + kNf4Values[9]) / 2;
  std::vector<float> weight(64);
  weight[0] = 1;
  weight[1] = -1;
  weight[3] = half_way;
  weight[4] = std::nextafter(half_way, 1.0f);
  const EncodedLinear encoded = encode(weight, 1, {.block_size = 64, .is_double = false});
  const auto* bytes = encoded.linear.weight.as<std::uint8_t>();
  CHECK(bytes[0] == 0xf0);
  CHECK(bytes[1] == 0x78);
  CHECK(bytes[2] == 0x97);
  CHECK(bytes[3] == 0x77);
}

TEST_CASE("encode_nf4: a block of zeros decodes to zeros, with single and double quantisation") {
  for (const bool is_double : {false, true}) {
    std::vector<float> weight(128);
    std::fill_n(weight.begin(), 64, 0.5f);
    const EncodedLinear encoded = encode(weight, 1, {.block_size = 64, .is_double = is_double});
    for (std::int64_t e = 64; e < 128; ++e)
      CHECK(kNf4Values[static_cast<std::size_t>(code_at(encoded.linear, e))] == 0);
    CHECK(std::isfinite(encoded.linear.nf4.absmax_of(1)));
  }
}

TEST_CASE("encode_nf4: scales of 8 bits stay near those of 32, in blocks of 256 of which the last is short") {
  std::vector<float> weight = normal_numbers(std::size_t{300} * 64);
  const EncodedLinear single = encode(weight, 30, {.block_size = 64, .is_double = false});
  const EncodedLinear nested = encode(weight, 30);
  const Nf4& nf4 = nested.linear.nf4;
  CHECK(nf4.absmax.describe() == "[300] u8");
  CHECK(nf4.nested_absmax.describe() == "[2] f32");
  for (std::int64_t b = 0; b < 300; ++b) {
    // Neighbouring values of the map are at most 1/64 apart below 0.9, and 1 is 0.007 from the last of them.
    const float tolerance = nf4.nested_absmax.as<float>()[b / 256] / 128;
    CHECK(std::abs(nf4.absmax_of(b) - single.linear.nf4.absmax_of(b)) <= tolerance);
  }
  CHECK(std::equal(nested.linear.weight.as<std::uint8_t>(), nested.linear.weight.as<std::uint8_t>() + 9600,
                   single.linear.weight.as<std::uint8_t>()));
}

TEST_CASE("encode_nf4: the map of 8-bit scales has the format's values, to the last bit") {
  std::vector<float> weight = normal_numbers(64);
  const EncodedLinear encoded = encode(weight, 1);
  const float* map = encoded.linear.nf4.nested_values.as<float>();
  CHECK(std::is_sorted(map, map + 256));
  // As the library stores them: several are a rounding away from their exact values.
  CHECK(map[0] == -0.992968738079071f);
  CHECK(map[1] == -0.9789062738418579f);
  CHECK(map[126] == -5.500000384017767e-07f);
  CHECK(map[127] == 0);
  CHECK(map[129] == 3.250000190746505e-06f);
  CHECK(map[254] == 0.992968738079071f);
  CHECK(map[255] == 1);
}

TEST_CASE("encode_nf4: the quant_state is what Python writes, and the whole is what the reader reads") {
  std::vector<float> weight = normal_numbers(std::size_t{6} * 100);
  std::vector<std::uint16_t> bf16;
  for (const float w : weight) bf16.push_back(to_bfloat16(w).bits);
  for (const bool is_double : {false, true}) {
    const EncodedLinear encoded =
        encode_nf4(TensorView(bf16.data(), DType::kBF16, {6, 100}), {.block_size = 128, .is_double = is_double}, "q");
    const Nf4& nf4 = encoded.linear.nf4;
    const std::string state = nf4_quant_state(nf4);
    CHECK(state.starts_with(R"({"quant_type": "nf4", "blocksize": 128, "dtype": "bfloat16", "shape": [6, 100])"));
    CHECK(contains(state, R"(, "nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": 0.0)") ==
          is_double);

    Module module;
    const auto put = [&](const char* part, const TensorView& view) {
      module.put(part, view.dtype(), {static_cast<const char*>(view.data()), view.num_bytes()});
    };
    put("weight", encoded.linear.weight);
    put("weight.absmax", nf4.absmax);
    put("weight.quant_map", nf4.code_values);
    if (is_double) put("weight.nested_absmax", nf4.nested_absmax);
    if (is_double) put("weight.nested_quant_map", nf4.nested_values);
    module.put("weight.quant_state.bitsandbytes__nf4", DType::kU8, state);
    ModuleTensors tensors = module.tensors();
    const LinearWeight linear = read_nf4(tensors);
    for (std::int64_t b = 0; b < 5; ++b) CHECK(linear.nf4.absmax_of(b) == nf4.absmax_of(b));
    CHECK(linear.nf4.nested_offset == nf4.nested_offset);
  }
}

TEST_CASE("encode_nf4: weights that are not finite are refused with their place, and so are odd block sizes") {
  std::vector<float> weight(128, 1.0f);
  weight[70] = std::numeric_limits<float>::quiet_NaN();
  const TensorView view(weight.data(), DType::kF32, {2, 64});
  CHECK(contains(testing::error_of([&] { encode_nf4(view, {}, "quantize: \"m\""); }),
                 "quantize: \"m\" has nan at [1, 6]"));
  for (const std::int64_t size : {0, -64, 1, 16, 48, 8192}) CHECK(!is_nf4_block_size(size));
  for (const std::int64_t size : {32, 64, 4096}) CHECK(is_nf4_block_size(size));
}

}  // namespace
}  // namespace treble
