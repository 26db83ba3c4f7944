#include "model/shape_source.h"

#include "model/quantizing_source.h"
#include "quant/encode_nf4.h"

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
      return nf4_linear_of({}, Nf4Encoding().is_double, out_features, in_features, has_bias);
  }
  if (has_bias) linear.bias = nowhere(format == WeightFormat::kInt8 ? DType::kF32 : DType::kBF16, {out_features});
  return linear;
}

LinearWeight ShapeSource::nf4_linear_of(const Nf4& like, bool is_nested, std::int64_t out_features,
                                        std::int64_t in_features, bool has_bias) {
  LinearWeight linear{.format = WeightFormat::kNf4};
  Nf4& nf4 = linear.nf4;
  nf4.out_features = out_features;
  nf4.in_features = in_features;
  nf4.dtype = like.dtype;
  nf4.block_size = like.block_size;
  nf4.nested_block_size = like.nested_block_size;
  const std::int64_t count = out_features * in_features, num_blocks = num_blocks_of(count, nf4.block_size);
  linear.weight = nowhere(DType::kU8, {num_blocks_of(count, 2)});
  nf4.code_values = nowhere(DType::kF32, {std::ssize(kNf4Values)});
  nf4.absmax = nowhere(is_nested ? DType::kU8 : DType::kF32, {num_blocks});
  if (is_nested) {
    nf4.nested_values = nowhere(DType::kF32, {256});
    nf4.nested_absmax = nowhere(DType::kF32, {num_blocks_of(num_blocks, nf4.nested_block_size)});
  }
  if (has_bias) linear.bias = nowhere(DType::kBF16, {out_features});
  return linear;
}

LinearWeight ShapeSource::linear(const std::string& name, std::int64_t out_features, std::int64_t in_features,
                                 bool has_bias) {
  const LinearEncoding encoding = encoding_of(name, in_features, conversion_);
  return linear_of(encoding.format, out_features, in_features, has_bias, encoding.rotation_group);
}

}  // namespace treble
