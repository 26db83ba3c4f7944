#include "quant/module_tensors.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <cmath>

#include "quant/allocate.h"
#include "tensor/element.h"

namespace treble {
namespace {

bool is_aligned(const TensorView& view) {
  return reinterpret_cast<std::uintptr_t>(view.data()) % size_of(view.dtype()) == 0;
}

}  // namespace

TensorView ModuleTensors::take_if(std::string_view name) {
  const auto found = parts_.find(name);
  if (found == parts_.end()) return {};
  const TensorView tensor = found->second;
  parts_.erase(found);
  return tensor;
}

TensorView ModuleTensors::take(std::string_view name) {
  if (!has(name)) fail(fmt::format("has no {}; is the download complete?", name));
  return take_if(name);
}

TensorView ModuleTensors::take_one_of(std::initializer_list<std::string_view> names) {
  TensorView found;
  std::string_view first;
  for (const std::string_view name : names) {
    if (!has(name)) continue;
    if (!first.empty()) fail(fmt::format("has both {} and {}, expected one of them", first, name));
    first = name;
    found = take_if(name);
  }
  return found;
}

Json ModuleTensors::json(std::string_view name, const TensorView& bytes) const {
  std::string_view text(static_cast<const char*>(bytes.data()), bytes.num_bytes());
  while (text.ends_with('\0')) text.remove_suffix(1);
  Json json = parse_json(text, fmt::format("{}: {}", where_, name), ErrorCode::kCheckpoint);
  if (!json.is_object()) fail(fmt::format("has a {} that is {}, expected an object", name, json.type_name()));
  return json;
}

TensorView ModuleTensors::floats(std::string_view name, const TensorView& tensor, std::int64_t count) {
  if (!is_floating(tensor.dtype()) || tensor.num_elements() != count)
    fail(fmt::format("has a {} of {}, expected {} floating numbers", name, tensor.describe(), count));
  if (!reads_values()) return {};
  for (std::int64_t i = 0; i < count; ++i)
    if (!std::isfinite(element(tensor, i)))
      fail(fmt::format("has {} in its {} at {}; the file is damaged", element(tensor, i), name, i));
  if (tensor.dtype() == DType::kF32 && is_aligned(tensor)) return tensor.reshape({count});
  const TensorView copy = allocate(DType::kF32, {count});
  for (std::int64_t i = 0; i < count; ++i) copy.as<float>()[i] = element(tensor, i);
  return copy;
}

TensorView ModuleTensors::positive_floats(std::string_view name, const TensorView& tensor, std::int64_t count) {
  const TensorView values = floats(name, tensor, count);
  if (!reads_values()) return values;
  for (std::int64_t i = 0; i < count; ++i)
    if (!(values.as<float>()[i] > 0))
      fail(fmt::format("has {} in its {} at {}; a scale is above 0", values.as<float>()[i], name, i));
  return values;
}

TensorView ModuleTensors::bias(std::string_view name, const TensorView& tensor, std::int64_t count) {
  if (!tensor) return {};
  const TensorView values = floats(name, tensor, count);
  if (!reads_values()) return {};
  if (tensor.dtype() == DType::kBF16 && is_aligned(tensor)) return tensor.reshape({count});
  const TensorView rounded = allocate(DType::kBF16, {count});
  for (std::int64_t i = 0; i < count; ++i) rounded.as<bfloat16>()[i] = to_bfloat16(values.as<float>()[i]);
  return rounded;
}

TensorView ModuleTensors::allocate(DType dtype, std::initializer_list<std::int64_t> shape) {
  return allocate_kept(dtype, shape, storage_);
}

void ModuleTensors::check_all_taken() const {
  if (!parts_.empty())
    fail(fmt::format("has a tensor {} that its format does not know; it cannot be left out safely",
                     parts_.begin()->first));
}

void ModuleTensors::fail(std::string_view what) const {
  throw Error(ErrorCode::kCheckpoint, fmt::format("{} {}", where_, what));
}

}  // namespace treble
