#include "cpu/int8_blocks.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "base/testing/instruction_sets.h"

using namespace treble;
using namespace treble::cpu;
using treble::testing::for_each_instruction_set;

namespace {

std::vector<Int8Blocks> supported_blocks() {
  std::vector<Int8Blocks> all;
  for (const Int8Blocks blocks : {Int8Blocks::kPortable, Int8Blocks::kVnni, Int8Blocks::kAmx})
    if (is_supported(blocks)) all.push_back(blocks);
  return all;
}

struct Codes {
  std::vector<std::int8_t> values;
  TensorView view;

  Codes(std::int64_t rows, std::int64_t columns, std::int64_t stride)
      : values(static_cast<std::size_t>(rows * stride)) {
    view = TensorView(values.data(), DType::kI8, {rows, stride}).slice(1, 0, columns);
  }
};

/// Sums of all tokens and outputs by blocks, computed in parts of `outputs_at_once`.
std::vector<std::int32_t> block_sums(Int8Blocks blocks, const Codes& tokens, const Codes& weight,
                                     std::int64_t outputs_at_once = 64) {
  const std::int64_t num_tokens = tokens.view.size(0), in_features = tokens.view.size(1);
  const std::int64_t out_features = weight.view.size(0);
  LinearWeight linear;
  linear.format = WeightFormat::kInt8;
  linear.weight = weight.view;
  std::vector<std::int8_t> packed(static_cast<std::size_t>(packed_codes_size(num_tokens, in_features)));
  for (std::int64_t t = 0; t < num_tokens; t += kInt8BlockTokens)
    pack_codes(blocks, tokens.view, t, std::min(t + kInt8BlockTokens, num_tokens), packed.data());
  std::vector<std::int32_t> sums(static_cast<std::size_t>(num_tokens * out_features));
  const TensorView view(sums.data(), DType::kI32, {num_tokens, out_features});
  for (std::int64_t o = 0; o < out_features; o += outputs_at_once)
    multiply_codes(blocks, packed.data(), linear, o, view.slice(1, o, std::min(o + outputs_at_once, out_features)));
  return sums;
}

/// By the definition.
std::vector<std::int32_t> plain_sums(const Codes& tokens, const Codes& weight) {
  std::vector<std::int32_t> sums;
  for (std::int64_t t = 0; t < tokens.view.size(0); ++t) {
    for (std::int64_t o = 0; o < weight.view.size(0); ++o) {
      const std::int8_t* a = tokens.view.as<std::int8_t>() + t * tokens.view.stride(0);
      const std::int8_t* b = weight.view.as<std::int8_t>() + o * weight.view.stride(0);
      std::int32_t sum = 0;
      for (std::int64_t k = 0; k < tokens.view.size(1); ++k) sum += a[k] * b[k];
      sums.push_back(sum);
    }
  }
  return sums;
}

}  // namespace

TEST_CASE("int8 blocks: the sums of random codes, whatever the number of tokens and outputs") {
  struct Case {
    std::int64_t num_tokens, out_features, in_features;
  };
  std::mt19937 random(5);
  for_each_instruction_set([&] {
    for (const Int8Blocks blocks : supported_blocks()) {
      for (const auto& [num_tokens, out_features, in_features] :
           {Case{1, 32, 64}, Case{15, 33, 128}, Case{16, 36, 64}, Case{17, 64, 192}, Case{33, 70, 64},
            Case{100, 100, 256}}) {
        CAPTURE(std::string(to_string(blocks)));
        CAPTURE(num_tokens);
        CAPTURE(out_features);
        Codes tokens(num_tokens, in_features, in_features + 3), weight(out_features, in_features, in_features);
        for (std::int8_t& code : tokens.values) code = static_cast<std::int8_t>(random());
        for (std::int8_t& code : weight.values) code = static_cast<std::int8_t>(random());
        const std::vector<std::int32_t> expected = plain_sums(tokens, weight);
        CHECK(block_sums(blocks, tokens, weight) == expected);
        CHECK(block_sums(blocks, tokens, weight, 32) == expected);
      }
    }
  });
}

TEST_CASE("int8 blocks: sums of the largest codes do not overflow or saturate") {
  constexpr std::int64_t kIn = 17408;  // the widest layer
  for (const Int8Blocks blocks : supported_blocks()) {
    CAPTURE(std::string(to_string(blocks)));
    for (const int token_code : {-128, 127}) {
      for (const int weight_code : {-128, 127}) {
        Codes tokens(2, kIn, kIn), weight(32, kIn, kIn);
        std::fill(tokens.values.begin(), tokens.values.end(), static_cast<std::int8_t>(token_code));
        std::fill(weight.values.begin(), weight.values.end(), static_cast<std::int8_t>(weight_code));
        CHECK(block_sums(blocks, tokens, weight) ==
              std::vector<std::int32_t>(64, static_cast<std::int32_t>(kIn) * token_code * weight_code));
      }
    }
  }
}

TEST_CASE("int8 blocks: codes keep their sign where the instruction takes it, in panels of sixteen tokens") {
  // AMX's form, without the instruction: byte (k, t) of a panel lies at k / 4 * 64 + t * 4 + k % 4.
  Codes tokens(18, 64, 64);
  std::mt19937 random(6);
  for (std::int8_t& code : tokens.values) code = static_cast<std::int8_t>(random());
  for_each_instruction_set([&] {
    std::vector<std::int8_t> packed(static_cast<std::size_t>(packed_codes_size(18, 64)));
    REQUIRE(packed.size() == 32 * 64);
    pack_codes(Int8Blocks::kAmx, tokens.view, 0, 18, packed.data());
    int num_wrong = 0;
    for (std::size_t t = 0; t < 18; ++t) {
      for (std::size_t k = 0; k < 64; ++k)
        num_wrong += packed[t / 16 * 1024 + k / 4 * 64 + t % 16 * 4 + k % 4] != tokens.values[t * 64 + k];
    }
    CHECK(num_wrong == 0);
  });
}
