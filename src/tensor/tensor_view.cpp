#include "tensor/tensor_view.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>

namespace treble {

TensorView::TensorView(void* data, DType dtype, std::initializer_list<std::int64_t> shape)
    : TensorView(data, dtype, shape.begin(), static_cast<int>(shape.size())) {}

TensorView::TensorView(void* data, DType dtype, const std::int64_t* shape, int rank)
    : data_(data), dtype_(dtype), rank_(rank) {
  if (rank > kMaxRank) throw Error(ErrorCode::kInternal, fmt::format("tensor: rank {} is above {}", rank, kMaxRank));
  std::copy_n(shape, rank, shape_.begin());
  std::int64_t stride = 1;
  for (int dim = rank - 1; dim >= 0; --dim) {
    strides_[static_cast<std::size_t>(dim)] = stride;
    stride *= size(dim);
  }
}

std::int64_t TensorView::num_elements() const {
  if (!data_) return 0;
  std::int64_t count = 1;
  for (int dim = 0; dim < rank_; ++dim) count *= size(dim);
  return count;
}

bool TensorView::is_contiguous() const {
  std::int64_t expected = 1;
  for (int dim = rank_ - 1; dim >= 0; --dim) {
    if (size(dim) != 1 && stride(dim) != expected) return false;
    expected *= size(dim);
  }
  return true;
}

TensorView TensorView::at(void* data) const {
  TensorView out = *this;
  out.data_ = data;
  return out;
}

TensorView TensorView::slice(int dim, std::int64_t begin, std::int64_t end) const {
  if (dim < 0 || dim >= rank_ || begin < 0 || begin > end || end > size(dim))
    throw Error(ErrorCode::kInternal,
                fmt::format("tensor: slice [{}, {}) of dimension {} of {}", begin, end, dim, describe()));
  TensorView out = *this;
  out.data_ = static_cast<std::byte*>(data_) + begin * stride(dim) * static_cast<std::int64_t>(size_of(dtype_));
  out.shape_[static_cast<std::size_t>(dim)] = end - begin;
  return out;
}

TensorView TensorView::reshape(std::initializer_list<std::int64_t> shape) const {
  TensorView out(data_, dtype_, shape);
  const auto fail = [&] {
    throw Error(ErrorCode::kInternal, fmt::format("tensor: {} cannot be seen as {}", describe(), out.describe()));
  };
  if (out.num_elements() != num_elements()) fail();
  if (is_contiguous()) return out;
  // Leading dimensions as they are, the last one split: their strides carry over.
  const int kept = rank_ - 1;
  if (out.rank_ < rank_) fail();
  for (int dim = 0; dim < kept; ++dim) {
    if (out.size(dim) != size(dim)) fail();
    out.strides_[static_cast<std::size_t>(dim)] = stride(dim);
  }
  return out;
}

std::string TensorView::describe() const {
  return fmt::format("[{}] {}", fmt::join(shape_.begin(), shape_.begin() + rank_, ", "), to_string(dtype_));
}

void TensorView::check_type(DType wanted) const {
  if (wanted != dtype_)
    throw Error(ErrorCode::kInternal, fmt::format("tensor: {} read as {}", describe(), to_string(wanted)));
}

}  // namespace treble
