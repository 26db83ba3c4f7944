#include "cuda/cuda_ops.h"
#include "cuda/launch.cuh"
#include "cuda/quantize_rows.cuh"

// Producers whose rows INT8 Linears read, in groups of 256: norms and SwiGLU write codes and scale themselves, and the
// plain row only where another reads it (quantize_rows.cuh). What is quantised is what the plain row would hold,
// rounded to the activations' type. Limit: device memory.

namespace treble::cuda {
namespace {

constexpr int kValues = Group256::kValues;

/// Values of type T that lanes quantise, and write where a Linear reads them plain.
template <typename T>
__device__ __forceinline__ void store_plain(const RowPlace& place, const Rows<T>& plain, int row, int i,
                                            const SixteenPacked<T>& values) {
  if (plain.data && place.has(i)) values.store(plain.row(row) + place.first_value(i));
}

template <int kGroups, typename T>
class NormedRows {
 public:
  static constexpr bool kAhead = reads_ahead<T>(kGroups, 1);

  __device__ __forceinline__ NormedRows(const RowPlace& place, Rows<const T> x, const bfloat16* weight, float eps,
                                        Rows<T> plain, float* partial)
      : place_(place), x_(x), weight_(weight), eps_(eps), plain_(plain), partial_(partial), next_(place.next_rows()) {}

  __device__ __forceinline__ void start(int row, int i) { next_.start(i, at(row, i)); }
  __device__ __forceinline__ void begin(int row) {
    float squares = 0;
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      if (!place_.has(i)) break;
      kept_[i] = next_.take(i, at(row, i));
      float x[kValues];
      kept_[i].unpack(x);
#pragma unroll
      for (int j = 0; j < kValues; ++j) squares += x[j] * x[j];
    }
    normalise_ = 1.0f / sqrtf(block_sum(squares, partial_) / static_cast<float>(place_.width()) + eps_);
  }
  __device__ __forceinline__ void values(int row, int i, float (&out)[kValues]) {
    SixteenPacked<bfloat16> packed_gains;
    packed_gains.load(weight_ + (place_.has(i) ? place_.first_value(i) : 0));
    float gains[kValues];
    packed_gains.unpack(gains);
    kept_[i].unpack(out);
#pragma unroll
    for (int j = 0; j < kValues; ++j) out[j] = out[j] * normalise_ * (1.0f + gains[j]);
    kept_[i].pack(out);
    kept_[i].unpack(out);
    store_plain(place_, plain_, row, i, kept_[i]);
  }

 private:
  __device__ __forceinline__ const T* at(int row, int i) const {
    return x_.row(row) + place_.first_value(i);
  }

  const RowPlace& place_;
  Rows<const T> x_;
  const bfloat16* weight_;
  float eps_;
  Rows<T> plain_;
  float* partial_;  // [32] in shared memory
  NextRow<T, kAhead> next_;
  SixteenPacked<T> kept_[kGroups] = {};
  float normalise_ = 0;
};

template <int kGroups, typename T>
__global__ void __launch_bounds__(most_threads(kGroups), producer_blocks_at_once(kGroups))
    rms_norm_int8_kernel(Rows<const T> x, const bfloat16* weight, float eps, int num_rows, int num_groups,
                         Rows<T> plain, QuantizeArgs args) {
  __shared__ float partial[kWarpSize];
  wait_for_earlier_kernels();
  const RowPlace place{num_rows, num_groups};
  NormedRows<kGroups, T> source(place, x, weight, eps, plain, partial);
  quantize_rows<kGroups>(place, args, source);
}

constexpr int kHeadDim = 128;  // of gated_norm_quantizes()

/// Two tensors of heads, of which a half warp takes two at a time.
template <int kGroups, typename T>
class GatedNormedRows {
 public:
  static constexpr bool kAhead = reads_ahead<T>(kGroups, 2);

  __device__ __forceinline__ GatedNormedRows(const RowPlace& place, Heads<const T> x, Heads<const T> gate,
                                             const bfloat16* weight, float eps, Rows<T> plain)
      : place_(place),
        x_(x),
        gate_(gate),
        weight_(weight),
        eps_(eps),
        plain_(plain),
        next_x_(place.next_rows()),
        next_gate_(place.next_rows() + NextRow<T, kAhead>::kBytes * kGroups * static_cast<int>(blockDim.x)) {}

  __device__ __forceinline__ void start(int row, int i) {
    next_x_.start(i, at(x_, row, i));
    next_gate_.start(i, at(gate_, row, i));
  }
  __device__ __forceinline__ void begin(int) {}
  __device__ __forceinline__ void values(int row, int i, float (&out)[kValues]) {
    SixteenPacked<T> packed = {}, packed_gates = {};
    if (place_.has(i)) {  // the others help with the sums
      packed = next_x_.take(i, at(x_, row, i));
      packed_gates = next_gate_.take(i, at(gate_, row, i));
    }
    packed.unpack(out);
    float squares = 0;
#pragma unroll
    for (int j = 0; j < kValues; ++j) squares += out[j] * out[j];
#pragma unroll
    for (int mask = kLanes / 2; mask > 0; mask /= 2) squares += shuffle_xor(squares, mask);
    const float normalise = 1.0f / sqrtf(squares / static_cast<float>(kHeadDim) + eps_);
    SixteenPacked<bfloat16> packed_gains;
    packed_gains.load(weight_ + first());
    float gates[kValues], gains[kValues];
    packed_gates.unpack(gates);
    packed_gains.unpack(gains);
#pragma unroll
    for (int j = 0; j < kValues; ++j) {
      // The reference rounds before the gain and after it, but not the silu.
      out[j] = round_to<T>(gains[j] * round_to<T>(out[j] * normalise)) * silu_as<T>(gates[j]);
    }
    packed.pack(out);
    packed.unpack(out);
    store_plain(place_, plain_, row, i, packed);
  }

 private:
  static constexpr int kLanes = kHeadDim / kValues;  // of a head

  /// Of the lane's head.
  __device__ __forceinline__ int first() const {
    return place_.lane % kLanes * kValues;
  }
  __device__ __forceinline__ const T* at(const Heads<const T>& heads, int row, int i) const {
    return heads.row(row, place_.group(i) * (Group256::kWidth / kHeadDim) + place_.lane / kLanes) + first();
  }

  const RowPlace& place_;
  Heads<const T> x_, gate_;
  const bfloat16* weight_;
  float eps_;
  Rows<T> plain_;
  NextRow<T, kAhead> next_x_, next_gate_;
};

template <int kGroups, typename T>
__global__ void __launch_bounds__(most_threads(kGroups), producer_blocks_at_once(kGroups))
    gated_rms_norm_int8_kernel(Heads<const T> x, Heads<const T> gate, const bfloat16* weight, float eps, int num_rows,
                               int num_groups, Rows<T> plain, QuantizeArgs args) {
  wait_for_earlier_kernels();
  const RowPlace place{num_rows, num_groups};
  GatedNormedRows<kGroups, T> source(place, x, gate, weight, eps, plain);
  quantize_rows<kGroups>(place, args, source);
}

template <int kGroups, typename T>
class SwigluRows {
 public:
  static constexpr bool kAhead = reads_ahead<T>(kGroups, 2);

  __device__ __forceinline__ SwigluRows(const RowPlace& place, Rows<const T> gate, Rows<const T> up, Rows<T> plain)
      : place_(place),
        gate_(gate),
        up_(up),
        plain_(plain),
        next_gate_(place.next_rows()),
        next_up_(place.next_rows() + NextRow<T, kAhead>::kBytes * kGroups * static_cast<int>(blockDim.x)) {}

  __device__ __forceinline__ void start(int row, int i) {
    next_gate_.start(i, at(gate_, row, i));
    next_up_.start(i, at(up_, row, i));
  }
  __device__ __forceinline__ void begin(int) {}
  __device__ __forceinline__ void values(int row, int i, float (&out)[kValues]) {
    SixteenPacked<T> packed = {}, packed_ups = {};
    if (place_.has(i)) {
      packed = next_gate_.take(i, at(gate_, row, i));
      packed_ups = next_up_.take(i, at(up_, row, i));
    }
    float ups[kValues];
    packed.unpack(out);
    packed_ups.unpack(ups);
#pragma unroll
    for (int j = 0; j < kValues; ++j) out[j] = round_to<T>(silu_as<T>(out[j])) * ups[j];
    packed.pack(out);
    packed.unpack(out);
    store_plain(place_, plain_, row, i, packed);
  }

 private:
  __device__ __forceinline__ const T* at(const Rows<const T>& rows, int row, int i) const {
    return rows.row(row) + place_.first_value(i);
  }

  const RowPlace& place_;
  Rows<const T> gate_, up_;
  Rows<T> plain_;
  NextRow<T, kAhead> next_gate_, next_up_;
};

template <int kGroups, typename T>
__global__ void __launch_bounds__(most_threads(kGroups), blocks_at_once(kGroups))
    swiglu_int8_kernel(Rows<const T> gate, Rows<const T> up, int num_rows, int num_groups, Rows<T> plain,
                       QuantizeArgs args) {
  wait_for_earlier_kernels();
  const RowPlace place{num_rows, num_groups};
  SwigluRows<kGroups, T> source(place, gate, up, plain);
  quantize_rows<kGroups>(place, args, source);
}

/// For with_group_256_launch().
template <typename T, int kTensors>
int next_row_bytes(int groups) {
  return reads_ahead<T>(groups, kTensors) ? kTensors * NextRow<T, true>::kBytes : 0;
}

bool fits_group_256(const QuantizedInput& out, bool is_aligned) {
  return out && choose_quantizer({out.codes.size(1), out.rotation_group, is_aligned}) == Quantizer::kGroup256;
}

}  // namespace

bool CudaOps::rms_norm_int8(const RmsNorm& args) {
  const QuantizedInput& out = args.out.quantized;
  if (!fits_group_256(out, rows_are_aligned(args.x, args.weight, args.out.plain, out.codes))) return false;
  const std::int64_t width = args.x.size(1);
  with_type(args.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    with_group_256_launch(
        args.x.size(0), width, {num_sms_, shared_bytes_per_block_}, next_row_bytes<T, 1>,
        [&](auto groups, const LaunchShape& shape) {
          launch("rms_norm_int8", stream_.get(), shape, rms_norm_int8_kernel<decltype(groups)::value, T>,
                 const_rows<T>(args.x), args.weight.as<bfloat16>(), args.eps, static_cast<int>(args.x.size(0)),
                 groups_of_256(width), rows_of<T>(args.out.plain), quantize_args(out, options_.int8_activations));
        });
  });
  return true;
}

bool CudaOps::gated_rms_norm_int8(const GatedRmsNorm& args) {
  const QuantizedInput& out = args.out.quantized;
  const bool is_aligned = rows_are_aligned(args.x, args.gate, args.weight, args.out.plain, out.codes);
  if (!gated_norm_quantizes(args.x.size(2)) || !fits_group_256(out, is_aligned)) return false;
  const std::int64_t width = args.x.size(1) * args.x.size(2);
  with_type(args.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    with_group_256_launch(args.x.size(0), width, {num_sms_, shared_bytes_per_block_}, next_row_bytes<T, 2>,
                          [&](auto groups, const LaunchShape& shape) {
                            launch("gated_rms_norm_int8", stream_.get(), shape,
                                   gated_rms_norm_int8_kernel<decltype(groups)::value, T>, const_heads<T>(args.x),
                                   const_heads<T>(args.gate), args.weight.as<bfloat16>(), args.eps,
                                   static_cast<int>(args.x.size(0)), groups_of_256(width), rows_of<T>(args.out.plain),
                                   quantize_args(out, options_.int8_activations));
                          });
  });
  return true;
}

bool CudaOps::swiglu_int8(const TensorView& gate, const TensorView& up, const LinearInput& out) {
  if (!fits_group_256(out.quantized, rows_are_aligned(gate, up, out.plain, out.quantized.codes))) return false;
  with_type(gate.dtype(), [&](auto zero) {
    using T = decltype(zero);
    with_group_256_launch(gate.size(0), gate.size(1), {num_sms_, shared_bytes_per_block_}, next_row_bytes<T, 2>,
                          [&](auto groups, const LaunchShape& shape) {
                            launch("swiglu_int8", stream_.get(), shape, swiglu_int8_kernel<decltype(groups)::value, T>,
                                   const_rows<T>(gate), const_rows<T>(up), static_cast<int>(gate.size(0)),
                                   groups_of_256(gate.size(1)), rows_of<T>(out.plain),
                                   quantize_args(out.quantized, options_.int8_activations));
                          });
  });
  return true;
}

}  // namespace treble::cuda
