#include "model/quantizing_source.h"

#include <fmt/format.h>
#include <treble/error.h>

#include "quant/allocate.h"
#include "quant/encode_int8.h"
#include "quant/encode_nf4.h"
#include "quant/rotation.h"
#include "quantize/conversion.h"
#include "tensor/element.h"

namespace treble {
namespace {

QuantizeFormat format_of(WeightConversion conversion) {
  switch (conversion) {
    case WeightConversion::kInt8Convrot:
      return QuantizeFormat::kInt8Convrot;
    case WeightConversion::kInt8:
      return QuantizeFormat::kInt8;
    default:
      return QuantizeFormat::kNf4;
  }
}

std::int64_t rotation_group_for(std::int64_t in_features) {
  std::int64_t group = kUsualRotationGroup;
  while (group > 1 && !is_rotation_group(group, in_features)) group /= 4;
  return group;
}

EncodedLinear encode(const TensorView& weight, const LinearEncoding& encoding, const std::string& where) {
  if (encoding.format == WeightFormat::kNf4) return encode_nf4(weight, {}, where);
  return encode_int8(weight, encoding.rotation_group, where);
}

TensorView widened(const TensorView& values, std::vector<std::shared_ptr<const void>>& storage) {
  const TensorView out = allocate_kept(DType::kF32, {values.size(0)}, storage);
  for (std::int64_t i = 0; i < values.size(0); ++i) out.as<float>()[i] = element(values, i);
  return out;
}

}  // namespace

std::string_view to_string(WeightConversion conversion) {
  return conversion == WeightConversion::kNone ? "as stored" : to_string(format_of(conversion));
}

LinearEncoding encoding_of(const std::string& name, std::int64_t in_features, WeightConversion conversion) {
  if (conversion == WeightConversion::kNone || !is_converted(format_of(conversion), name)) return {};
  if (conversion == WeightConversion::kNf4) return {WeightFormat::kNf4};
  const bool is_rotated = conversion == WeightConversion::kInt8Convrot;
  return {WeightFormat::kInt8, is_rotated ? rotation_group_for(in_features) : 1};
}

LinearWeight QuantizingSource::linear(const std::string& name, std::int64_t out_features, std::int64_t in_features,
                                      bool has_bias) {
  const LinearWeight plain = plain_.linear(name, out_features, in_features, has_bias);
  const LinearEncoding encoding = encoding_of(name, in_features, conversion_);
  if (encoding.format == WeightFormat::kDense) return plain;
  if (plain.format != WeightFormat::kDense) {
    throw Error(ErrorCode::kArgument,
                fmt::format("engine: weights cannot become {} while they are loaded: \"{}\" is quantised already; load "
                            "this release as it is, or a bf16 one",
                            to_string(conversion_), name));
  }
  EncodedLinear encoded = encode(plain.weight, encoding, fmt::format("checkpoint: \"{}\"", name));
  plain_.release(plain.weight);
  storage_.insert(storage_.end(), encoded.storage.begin(), encoded.storage.end());
  encoded.linear.bias = plain.bias;
  if (plain.bias && encoded.linear.format == WeightFormat::kInt8) encoded.linear.bias = widened(plain.bias, storage_);
  return encoded.linear;
}

void QuantizingSource::release(const LinearWeight& linear) {
  LinearWeight views = linear;
  for (const TensorView* view : views.tensors())
    std::erase_if(storage_, [&](const auto& kept) { return *view && kept.get() == view->data(); });
}

}  // namespace treble
