#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "ops/ops.h"
#include "ops/testing/backends.h"
#include "ops/testing/tolerance.h"

namespace treble::testing {

/// An input as the operation reads it, and the same elements (after rounding to its dtype) for the definition.
struct Operand {
  TensorView view;
  std::vector<double> values;  // row-major

  operator TensorView() const { return view; }
  double operator[](std::int64_t i) const { return values[static_cast<std::size_t>(i)]; }
};

/// x as dtype (f32 or bf16) holds it.
double rounded(DType dtype, double x);

/// One test of one operation on one backend. Owns the tensors, each in memory of exactly its size.
///
///     for (const Backend& backend : backends()) {
///       OpTest test("gelu", backend, 7);
///       const Operand x = test.normal(test.act(), {3, 130});
///       test.ops().gelu({.x = x, .form = GeluForm::kErf});
///       test.expect(x, expected, tolerance(test.act(), 1));
///     }
class OpTest {
 public:
  using Shape = std::initializer_list<std::int64_t>;

  OpTest(std::string op, const Backend& backend, std::uint32_t seed);

  Ops& ops() { return *ops_; }
  /// As in Backend.
  double operand_unit() const { return operand_unit_; }
  /// The backend's activation dtype.
  DType act() const { return ops_->activation_dtype(); }

  /// Inputs, also for operations that work in place: `values` keep what was there before.
  Operand normal(DType dtype, Shape shape, double scale = 1);
  Operand uniform(DType dtype, Shape shape, double low, double high);
  Operand with_values(DType dtype, Shape shape, std::span<const double> values);
  /// Indices, in the backend's memory.
  TensorView integers(Shape shape, std::span<const std::int32_t> values);
  /// Indices that the contract wants in host memory.
  TensorView host_integers(Shape shape, std::span<const std::int32_t> values);
  /// An output, full of NaN.
  TensorView output(DType dtype, Shape shape);

  /// Elements of a view of a tensor from here, in row-major order.
  std::vector<double> read(const TensorView& view);
  /// Fails the test, and says where and with which seed, unless every element of `actual` is close.
  void expect(const TensorView& actual, std::span<const double> expected, Tolerance tolerance);
  /// Fails the test when more than one element in fifty differs from `expected` at all, where `expected` was rounded
  /// like the operation rounds. A rounding left out or put in changes a fifth of the elements and more; a different
  /// order of fp32 sums tips one in hundreds over.
  void expect_rounded(const TensorView& actual, std::span<const double> expected);

 private:
  struct Tensor {
    std::unique_ptr<std::byte[]> host;
    TensorView host_view;
    TensorView view;  // in the backend's memory; contiguous
  };

  TensorView place(DType dtype, Shape shape, std::span<const double> values);
  TensorView keep(std::unique_ptr<std::byte[]> host, const TensorView& host_view);

  std::string op_;
  std::string backend_;
  double operand_unit_;
  std::uint32_t seed_;
  std::mt19937 random_;
  std::unique_ptr<Ops> ops_;
  Workspace workspace_;
  std::vector<Tensor> tensors_;
};

}  // namespace treble::testing
