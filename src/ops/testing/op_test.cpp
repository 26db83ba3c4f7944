#include "ops/testing/op_test.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "tensor/bfloat16.h"

namespace treble::testing {
namespace {

void set_element(const TensorView& view, std::int64_t offset, double value) {
  switch (view.dtype()) {
    case DType::kF32:
      view.as<float>()[offset] = static_cast<float>(value);
      return;
    case DType::kBF16:
      view.as<bfloat16>()[offset] = to_bfloat16(static_cast<float>(value));
      return;
    case DType::kI32:
      view.as<std::int32_t>()[offset] = static_cast<std::int32_t>(value);
      return;
    case DType::kU8:
      view.as<std::uint8_t>()[offset] = static_cast<std::uint8_t>(value);
      return;
    default:
      throw std::logic_error("op test: no " + std::string(to_string(view.dtype())) + " tensors");
  }
}

double element(const TensorView& view, std::int64_t offset) {
  switch (view.dtype()) {
    case DType::kF32:
      return static_cast<double>(view.as<float>()[offset]);
    case DType::kBF16:
      return static_cast<double>(to_float(view.as<bfloat16>()[offset]));
    case DType::kI32:
      return view.as<std::int32_t>()[offset];
    case DType::kU8:
      return view.as<std::uint8_t>()[offset];
    default:
      throw std::logic_error("op test: no " + std::string(to_string(view.dtype())) + " tensors");
  }
}

/// The multi-index of a row-major position.
std::array<std::int64_t, TensorView::kMaxRank> index_of(const TensorView& view, std::int64_t position) {
  std::array<std::int64_t, TensorView::kMaxRank> index{};
  for (int dim = view.rank() - 1; dim >= 0; --dim) {
    index[static_cast<std::size_t>(dim)] = position % view.size(dim);
    position /= view.size(dim);
  }
  return index;
}

/// In elements from the view's first.
std::int64_t offset_of(const TensorView& view, std::int64_t position) {
  const auto index = index_of(view, position);
  std::int64_t offset = 0;
  for (int dim = 0; dim < view.rank(); ++dim) offset += index[static_cast<std::size_t>(dim)] * view.stride(dim);
  return offset;
}

std::size_t count_of(OpTest::Shape shape) {
  std::size_t count = 1;
  for (const std::int64_t size : shape) count *= static_cast<std::size_t>(size);
  return count;
}

}  // namespace

double rounded(DType dtype, double x) {
  const float narrow = static_cast<float>(x);
  return static_cast<double>(dtype == DType::kBF16 ? to_float(to_bfloat16(narrow)) : narrow);
}

OpTest::OpTest(std::string op, const Backend& backend, std::uint32_t seed)
    : op_(std::move(op)),
      backend_(backend.name),
      operand_unit_(backend.operand_unit),
      seed_(seed),
      random_(seed),
      ops_(backend.make()),
      workspace_(ops_->memory()) {}

Operand OpTest::normal(DType dtype, Shape shape, double scale) {
  std::normal_distribution<double> distribution(0, scale);
  std::vector<double> values(count_of(shape));
  for (double& value : values) value = distribution(random_);
  return with_values(dtype, shape, values);
}

Operand OpTest::uniform(DType dtype, Shape shape, double low, double high) {
  std::uniform_real_distribution<double> distribution(low, high);
  std::vector<double> values(count_of(shape));
  for (double& value : values) value = distribution(random_);
  return with_values(dtype, shape, values);
}

Operand OpTest::with_values(DType dtype, Shape shape, std::span<const double> values) {
  Operand operand;
  operand.view = place(dtype, shape, values);
  operand.values = read(operand.view);
  return operand;
}

TensorView OpTest::integers(Shape shape, std::span<const std::int32_t> values) {
  return place(DType::kI32, shape, std::vector<double>(values.begin(), values.end()));
}

TensorView OpTest::host_integers(Shape shape, std::span<const std::int32_t> values) {
  const TensorView view = integers(shape, values);
  for (const Tensor& tensor : tensors_) {
    if (tensor.view.data() == view.data()) return tensor.host_view;
  }
  return view;
}

TensorView OpTest::output(DType dtype, Shape shape) {
  return place(dtype, shape, std::vector<double>(count_of(shape), std::numeric_limits<double>::quiet_NaN()));
}

TensorView OpTest::place(DType dtype, Shape shape, std::span<const double> values) {
  if (values.size() != count_of(shape)) throw std::logic_error("op test: as many values as the shape holds, please");
  auto host = std::make_unique<std::byte[]>(values.size() * size_of(dtype));
  const TensorView host_view(host.get(), dtype, shape);
  for (std::size_t i = 0; i < values.size(); ++i) set_element(host_view, static_cast<std::int64_t>(i), values[i]);
  return keep(std::move(host), host_view);
}

TensorView OpTest::keep(std::unique_ptr<std::byte[]> host, const TensorView& host_view) {
  const TensorView view = ops_->upload(workspace_, host_view);
  tensors_.push_back({std::move(host), host_view, view});
  return view;
}

std::vector<double> OpTest::read(const TensorView& view) {
  const auto* wanted = static_cast<const std::byte*>(view.data());
  for (const Tensor& tensor : tensors_) {
    const auto* begin = static_cast<const std::byte*>(tensor.view.data());
    if (wanted < begin || wanted >= begin + std::max<std::size_t>(tensor.view.num_bytes(), 1)) continue;
    auto copy = std::make_unique<std::byte[]>(tensor.view.num_bytes());
    ops_->download(tensor.view, copy.get());
    const TensorView whole(copy.get(), view.dtype(), {tensor.view.num_elements()});
    const std::int64_t first = (wanted - begin) / static_cast<std::int64_t>(size_of(view.dtype()));
    std::vector<double> values(static_cast<std::size_t>(view.num_elements()));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = element(whole, first + offset_of(view, static_cast<std::int64_t>(i)));
    return values;
  }
  throw std::logic_error("op test: read a view of a tensor that is not the test's");
}

void OpTest::expect(const TensorView& actual, std::span<const double> expected, Tolerance tolerance) {
  const std::vector<double> values = read(actual);
  REQUIRE(values.size() == expected.size());
  std::size_t num_wrong = 0, worst = 0;
  double worst_excess = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double error = std::abs(values[i] - expected[i]);
    const double allowed = tolerance.relative * std::abs(expected[i]) + tolerance.absolute;
    if (error <= allowed || values[i] == expected[i]) continue;  // NaN goes on
    const double excess = std::isnan(error) ? std::numeric_limits<double>::infinity() : error / allowed;
    if (num_wrong++ == 0 || excess > worst_excess) {
      worst = i;
      worst_excess = excess;
    }
  }
  if (num_wrong == 0) {
    CHECK(num_wrong == 0);
    return;
  }
  const auto index = index_of(actual, static_cast<std::int64_t>(worst));
  FAIL_CHECK(
      fmt::format("{} on {}: {} of {} elements of {} are wrong; the worst, at [{}], is {:.9g}, expected {:.9g}, "
                  "{:.3g} times the tolerance; seed {}",
                  op_, backend_, num_wrong, values.size(), actual.describe(),
                  fmt::join(index.begin(), index.begin() + actual.rank(), ", "), values[worst], expected[worst],
                  worst_excess, seed_));
}

void OpTest::expect_rounded(const TensorView& actual, std::span<const double> expected) {
  const std::vector<double> values = read(actual);
  REQUIRE(values.size() == expected.size());
  std::size_t num_different = 0;
  for (std::size_t i = 0; i < values.size(); ++i) num_different += values[i] != expected[i];
  const bool rounds_alike = num_different * 50 <= values.size();
  CHECK_MESSAGE(rounds_alike, fmt::format("{} on {}: {} of {} elements of {} are rounded differently; seed {}", op_,
                                          backend_, num_different, values.size(), actual.describe(), seed_));
}

}  // namespace treble::testing
