#include "tensor/tensor_view.h"

#include <doctest/doctest.h>
#include <treble/error.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>

namespace treble {
namespace {

/// 24 floats that hold their own index.
struct Numbers {
  Numbers() { std::iota(values.begin(), values.end(), 0.0f); }
  std::array<float, 24> values;
};

std::string message_of(auto&& call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInternal);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("dtype: sizes and names") {
  CHECK(size_of(DType::kF64) == 8);
  CHECK(size_of(DType::kI64) == 8);
  CHECK(size_of(DType::kF32) == 4);
  CHECK(size_of(DType::kU32) == 4);
  CHECK(size_of(DType::kF16) == 2);
  CHECK(size_of(DType::kBF16) == 2);
  CHECK(size_of(DType::kF8E4M3) == 1);
  CHECK(size_of(DType::kBool) == 1);
  CHECK(to_string(DType::kBF16) == "bf16");
  CHECK(to_string(DType::kF8E4M3) == "f8_e4m3");
}

TEST_CASE("bfloat16: rounds to nearest, ties to even, and keeps NaN and infinity") {
  CHECK(to_bfloat16(1.0f).bits == 0x3F80);
  CHECK(to_bfloat16(1.0f + 1.0f / 256).bits == 0x3F80);  // half way, down to even
  CHECK(to_bfloat16(1.0f + 3.0f / 256).bits == 0x3F82);  // half way, up to even
  CHECK(to_bfloat16(std::nextafter(1.0f + 1.0f / 256, 2.0f)).bits == 0x3F81);
  CHECK(to_bfloat16(-0.0f).bits == 0x8000);
  CHECK(to_bfloat16(std::numeric_limits<float>::infinity()).bits == 0x7F80);
  CHECK(to_bfloat16(std::numeric_limits<float>::max()).bits == 0x7F80);
  CHECK(std::isnan(to_float(to_bfloat16(std::numeric_limits<float>::quiet_NaN()))));
  CHECK(to_float(bfloat16{0x4049}) == 3.140625f);
}

TEST_CASE("tensor: a default-made view is empty and false") {
  const TensorView view;
  CHECK_FALSE(view);
  CHECK(view.num_elements() == 0);
  CHECK(view.num_bytes() == 0);
  CHECK(view.describe() == "[] f32");
}

TEST_CASE("tensor: a new view is row-major and contiguous") {
  Numbers numbers;
  const TensorView view(numbers.values.data(), DType::kF32, {2, 3, 4});
  CHECK(view);
  CHECK(view.rank() == 3);
  CHECK(view.size(1) == 3);
  CHECK(view.stride(0) == 12);
  CHECK(view.stride(1) == 4);
  CHECK(view.stride(2) == 1);
  CHECK(view.num_elements() == 24);
  CHECK(view.num_bytes() == 96);
  CHECK(view.is_contiguous());
  CHECK(view.describe() == "[2, 3, 4] f32");
}

TEST_CASE("tensor: a scalar has one element, a size of 0 has none but an address") {
  Numbers numbers;
  const TensorView scalar(numbers.values.data(), DType::kF32, {});
  CHECK(scalar.num_elements() == 1);
  CHECK(scalar.is_contiguous());
  CHECK(scalar.reshape({1, 1}).num_elements() == 1);
  const TensorView nothing(numbers.values.data(), DType::kF32, {0, 4});
  CHECK(nothing);
  CHECK(nothing.num_elements() == 0);
}

TEST_CASE("tensor: a slice of rows is contiguous, a slice of columns is strided") {
  Numbers numbers;
  const TensorView view(numbers.values.data(), DType::kF32, {4, 6});

  const TensorView rows = view.rows(1, 3);
  CHECK(rows.describe() == "[2, 6] f32");
  CHECK(rows.is_contiguous());
  CHECK(rows.as<float>()[0] == 6.0f);

  const TensorView columns = view.slice(1, 2, 5);
  CHECK(columns.describe() == "[4, 3] f32");
  CHECK_FALSE(columns.is_contiguous());
  CHECK(columns.stride(0) == 6);
  CHECK(columns.as<float>()[0] == 2.0f);

  const TensorView inner = columns.rows(2, 4).slice(1, 1, 2);
  CHECK(inner.as<float>()[0] == 15.0f);
  CHECK(inner.as<float>()[inner.stride(0)] == 21.0f);
}

TEST_CASE("tensor: one row of a strided view is contiguous again") {
  Numbers numbers;
  const TensorView columns = TensorView(numbers.values.data(), DType::kF32, {4, 6}).slice(1, 2, 5);
  CHECK(columns.rows(1, 2).is_contiguous());
  CHECK(columns.rows(1, 2).reshape({3}).as<float>()[0] == 8.0f);
}

TEST_CASE("tensor: a slice may be empty or whole") {
  Numbers numbers;
  const TensorView view(numbers.values.data(), DType::kF32, {4, 6});
  CHECK(view.rows(4, 4).num_elements() == 0);
  CHECK(view.rows(4, 4));
  CHECK(view.rows(0, 4).is_contiguous());
  CHECK(view.slice(1, 0, 6).is_contiguous());
}

TEST_CASE("tensor: a slice outside its view is an error") {
  Numbers numbers;
  const TensorView view(numbers.values.data(), DType::kF32, {4, 6});
  CHECK(message_of([&] { view.rows(0, 5); }) == "tensor: slice [0, 5) of dimension 0 of [4, 6] f32");
  CHECK(message_of([&] { view.rows(-1, 2); }).find("[-1, 2)") != std::string::npos);
  CHECK(message_of([&] { view.rows(3, 2); }).find("[3, 2)") != std::string::npos);
  CHECK(message_of([&] { view.slice(2, 0, 1); }).find("dimension 2") != std::string::npos);
  CHECK(message_of([&] { view.slice(-1, 0, 1); }).find("dimension -1") != std::string::npos);
  CHECK(message_of([] { TensorView().rows(0, 1); }) != "no error");
}

TEST_CASE("tensor: a contiguous view takes any shape of the same size") {
  Numbers numbers;
  const TensorView view(numbers.values.data(), DType::kF32, {4, 6});
  CHECK(view.reshape({24}).is_contiguous());
  CHECK(view.reshape({2, 2, 3, 2}).describe() == "[2, 2, 3, 2] f32");
  CHECK(view.reshape({1, 24}).as<float>() == numbers.values.data());
  CHECK(message_of([&] { view.reshape({5, 5}); }) == "tensor: [4, 6] f32 cannot be seen as [5, 5] f32");
}

TEST_CASE("tensor: the last dimension of a strided view may be split, and nothing else") {
  Numbers numbers;
  const TensorView columns = TensorView(numbers.values.data(), DType::kF32, {4, 6}).slice(1, 2, 6);  // [4, 4], stride 6
  const TensorView split = columns.reshape({4, 2, 2});
  CHECK(split.stride(0) == 6);
  CHECK(split.stride(1) == 2);
  CHECK(split.stride(2) == 1);
  CHECK(split.slice(0, 3, 4).slice(1, 1, 2).as<float>()[0] == 22.0f);
  CHECK(message_of([&] { columns.reshape({16}); }) != "no error");
  CHECK(message_of([&] { columns.reshape({2, 8}); }) != "no error");
  CHECK(message_of([&] { columns.reshape({2, 2, 4}); }) != "no error");
}

TEST_CASE("tensor: an element type that is not the view's is an error") {
  Numbers numbers;
  const TensorView view(numbers.values.data(), DType::kF32, {24});
  CHECK(view.as<float>()[5] == 5.0f);
  CHECK(message_of([&] { view.as<bfloat16>(); }) == "tensor: [24] f32 read as bf16");
  CHECK(message_of([&] { view.as<std::int32_t>(); }) == "tensor: [24] f32 read as i32");
}

TEST_CASE("tensor: more dimensions than a view can have are an error") {
  Numbers numbers;
  CHECK(message_of([&] {
          TensorView(numbers.values.data(), DType::kF32, {1, 1, 1, 1, 1, 24});
        }) == "tensor: rank 6 is above 5");
}

}  // namespace treble
