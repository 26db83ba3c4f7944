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

EncodedLinear encode(const TensorView& weight, WeightConversion conversion, const std::string& where) {
  if (conversion == WeightConversion::kNf4) return encode_nf4(weight, {}, where);
  const bool is_rotated = conversion == WeightConversion::kInt8Convrot;
  return encode_int8(weight, is_rotated ? rotation_group_for(weight.size(1)) : 1, where);
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

LinearWeight QuantizingSource::linear(const std::string& name, std::int64_t out_features, std::int64_t in_features,
                                      bool has_bias) {
  const LinearWeight plain = plain_.linear(name, out_features, in_features, has_bias);
  const QuantizeFormat format = format_of(conversion_);
  if (!is_converted(format, name)) return plain;
  if (plain.format != WeightFormat::kDense) {
    throw Error(ErrorCode::kArgument,
                fmt::format("engine: weights cannot become {} while they are loaded: \"{}\" is quantised already; load "
                            "this release as it is, or a bf16 one",
                            to_string(format), name));
  }
  EncodedLinear encoded = encode(plain.weight, conversion_, fmt::format("checkpoint: \"{}\"", name));
  plain_.release(plain.weight);
  storage_.insert(storage_.end(), encoded.storage.begin(), encoded.storage.end());
  encoded.linear.bias = plain.bias;
  if (plain.bias && encoded.linear.format == WeightFormat::kInt8) encoded.linear.bias = widened(plain.bias, storage_);
  return encoded.linear;
}

}  // namespace treble
