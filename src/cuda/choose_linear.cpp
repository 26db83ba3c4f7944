#include "cuda/choose_linear.h"

#include "cuda/choose_wgmma_tile.h"

namespace treble::cuda {

LinearKernel choose_linear(const LinearShape& shape) {
  // cuBLASLt takes five launches for an fp32 input, some 20 us; the kernel takes one, and reads the input from the L2
  // cache for every 16 outputs, which for so many elements and 1,024 outputs is 64 MB or 12 us.
  constexpr std::int64_t kFewRows = 256, kFewElements = std::int64_t{256} << 10;
  const bool is_few = shape.num_tokens <= kFewRows && shape.num_tokens * shape.in_features <= kFewElements;
  if (shape.input_dtype == DType::kF32 && is_few) return LinearKernel::kFewRows;
  // Eight bf16 elements are the 16 bytes that a tensor core's loads take.
  constexpr std::int64_t kElements = 8;
  const bool fits = shape.is_aligned && shape.in_features > 0 && shape.in_features % kElements == 0 &&
                    shape.out_features % kElements == 0;
  return fits ? LinearKernel::kCublasLt : LinearKernel::kTiles;
}

DenseKernel choose_dense(const DenseShape& shape, int compute_capability, int num_sms, KernelSet kernels) {
  // Measured on an H200: where tiles fill the device, ours is up to 13 % faster than cuBLASLt; where they leave some of
  // it idle, cuBLASLt has more tiles to choose from, and for few tokens it splits the sums. The border lies where ours
  // is estimated to reach this much.
  constexpr double kLeastEfficiency = 0.82;
  constexpr std::int64_t kElements = 16;  // what a slab of weight rows has
  const bool fits = shape.out_dtype == DType::kBF16 && !shape.has_bias && shape.out_features % kElements == 0;
  return fits && has_wgmma(compute_capability, kernels) &&
                 wgmma_efficiency(shape.num_tokens, shape.out_features, num_sms) >= kLeastEfficiency
             ? DenseKernel::kWgmmaSm90
             : DenseKernel::kCublasLt;
}

Int8LinearKernel choose_int8_linear(const Int8LinearShape& shape, int compute_capability, KernelSet kernels) {
  constexpr std::int64_t kInputs = 16;   // codes in 16 bytes, which copies take
  constexpr std::int64_t kOutputs = 16;  // what a slab of weight rows has
  if (kernels == KernelSet::kPlain || !shape.is_aligned || shape.in_features == 0 || shape.in_features % kInputs != 0)
    return Int8LinearKernel::kTiles;
  const bool fits = shape.out_dtype == DType::kBF16 && shape.out_is_aligned && shape.out_features % kOutputs == 0;
  return fits && has_wgmma(compute_capability, kernels) ? Int8LinearKernel::kWgmmaSm90 : Int8LinearKernel::kMmaSm80;
}

bool are_plain(WeightFormat format, const LinearWeight& gate, const LinearWeight& up) {
  const auto is_plain = [&](const LinearWeight& weight) { return weight.format == format && !weight.bias; };
  return is_plain(gate) && is_plain(up);
}

bool read_same_codes(const LinearWeight& one, const LinearWeight& other) {
  return one.format == WeightFormat::kInt8 && other.format == WeightFormat::kInt8 &&
         one.int8.rotation_group == other.int8.rotation_group &&
         one.int8.input_factor.data() == other.int8.input_factor.data();
}

SwigluKernel choose_swiglu(const SwigluShape& shape, int compute_capability, KernelSet kernels) {
  constexpr std::int64_t kElements = 8;  // of bf16 in 16 bytes, of which tensor maps are made
  const std::int64_t in_elements = shape.is_int8 ? 2 * kElements : kElements;
  const bool fits = shape.dtype == DType::kBF16 && shape.is_aligned && shape.is_ordered && shape.in_features > 0 &&
                    shape.in_features % in_elements == 0 && shape.out_features % kElements == 0;
  return has_wgmma(compute_capability, kernels) && fits ? SwigluKernel::kWgmmaSm90 : SwigluKernel::kSeparate;
}

}  // namespace treble::cuda
