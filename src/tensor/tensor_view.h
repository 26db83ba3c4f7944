#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "tensor/bfloat16.h"
#include "tensor/dtype.h"

namespace treble {

/// A borrowed block of elements with a shape: where something lies, not who owns it.
/// The last dimension is contiguous; the others may be strided. Memory may belong to a device.
/// A default-made view is empty: it stands for an operand that is not there.
class TensorView {
 public:
  static constexpr int kMaxRank = 5;

  TensorView() = default;
  /// Contiguous, row-major.
  TensorView(void* data, DType dtype, std::initializer_list<std::int64_t> shape);
  TensorView(void* data, DType dtype, const std::int64_t* shape, int rank);

  explicit operator bool() const { return data_ != nullptr; }
  void* data() const { return data_; }
  DType dtype() const { return dtype_; }
  int rank() const { return rank_; }
  std::int64_t size(int dim) const { return shape_[static_cast<std::size_t>(dim)]; }
  /// In elements.
  std::int64_t stride(int dim) const { return strides_[static_cast<std::size_t>(dim)]; }
  std::int64_t num_elements() const;
  std::size_t num_bytes() const { return static_cast<std::size_t>(num_elements()) * size_of(dtype_); }
  bool is_contiguous() const;

  /// The same shape and strides in other memory.
  TensorView at(void* data) const;
  /// Elements [begin, end) of one dimension.
  TensorView slice(int dim, std::int64_t begin, std::int64_t end) const;
  /// Rows [begin, end) of the first dimension.
  TensorView rows(std::int64_t begin, std::int64_t end) const { return slice(0, begin, end); }
  /// The same elements under another shape.
  /// The last dimension may be split whatever the strides; any other change needs a contiguous view.
  TensorView reshape(std::initializer_list<std::int64_t> shape) const;

  /// Typed pointer to the first element. T is float, bfloat16, std::int32_t ..., and must be the view's dtype.
  template <typename T>
  T* as() const {
    check_type(kDTypeOf<T>);
    return static_cast<T*>(data_);
  }

  /// "[3, 256] bf16"
  std::string describe() const;

  template <typename T>
  static constexpr DType kDTypeOf = std::is_same_v<T, double>         ? DType::kF64
                                    : std::is_same_v<T, float>        ? DType::kF32
                                    : std::is_same_v<T, bfloat16>     ? DType::kBF16
                                    : std::is_same_v<T, std::int64_t> ? DType::kI64
                                    : std::is_same_v<T, std::int32_t> ? DType::kI32
                                    : std::is_same_v<T, std::int8_t>  ? DType::kI8
                                                                      : DType::kU8;

 private:
  void check_type(DType wanted) const;

  void* data_ = nullptr;
  DType dtype_ = DType::kF32;
  int rank_ = 0;
  std::array<std::int64_t, kMaxRank> shape_{};
  std::array<std::int64_t, kMaxRank> strides_{};
};

}  // namespace treble
