#include "model/shape_source.h"

#include "model/quantizing_source.h"

namespace treble {

TensorView ShapeSource::nowhere(DType dtype, std::initializer_list<std::int64_t> shape) {
  return TensorView(memory_.allocate(1), dtype, shape);
}

LinearWeight ShapeSource::linear_of(WeightFormat format, std::int64_t out_features, std::int64_t in_features,
                                    bool has_bias, std::int64_t rotation_group) {
  LinearWeight linear{.format = format};
  switch (format) {
    case WeightFormat::kDense:
      linear.weight = nowhere(DType::kBF16, {out_features, in_features});
      break;
    case WeightFormat::kInt8:
      linear.weight = nowhere(DType::kI8, {out_features, in_features});
      linear.int8.row_scale = nowhere(DType::kF32, {out_features});
      linear.int8.rotation_group = rotation_group;
      break;
    case WeightFormat::kNf4:
      linear.weight = nowhere(DType::kU8, {(out_features * in_features + 1) / 2});
      linear.nf4.out_features = out_features;
      linear.nf4.in_features = in_features;
      break;
  }
  if (has_bias) linear.bias = nowhere(format == WeightFormat::kInt8 ? DType::kF32 : DType::kBF16, {out_features});
  return linear;
}

LinearWeight ShapeSource::linear(const std::string& name, std::int64_t out_features, std::int64_t in_features,
                                 bool has_bias) {
  const LinearEncoding encoding = encoding_of(name, in_features, conversion_);
  return linear_of(encoding.format, out_features, in_features, has_bias, encoding.rotation_group);
}

}  // namespace treble
