#pragma once

#include <algorithm>
#include <type_traits>

#include "cuda/choose_quantizer.h"
#include "cuda/launch_shape.h"
#include "cuda/quantize_row.cuh"

// Blocks that quantise rows of groups of 256, one after the other: a half warp takes every so many groups of a row,
// which stay in registers from the values to the codes. What the next row is made of comes to shared memory meanwhile.

namespace treble::cuda {

/// Threads of a block at most, and blocks in a multiprocessor: what registers allow.
constexpr int most_threads(int groups_of_half_warp) {
  return groups_of_half_warp == 2 ? kTwoGroupThreads : kQuantizerThreads;
}
constexpr int blocks_at_once(int groups_of_half_warp) {
  return groups_of_half_warp == 4 ? 1 : 2;
}
/// The same of producers, which keep more than the values.
constexpr int producer_blocks_at_once(int groups_of_half_warp) {
  return groups_of_half_warp == 1 ? 2 : 1;
}

/// Whether rows are read ahead: not where they would take more shared memory than any device has.
/// @param num_tensors  of which a row is made
template <typename T>
constexpr bool reads_ahead(int groups_of_half_warp, int num_tensors) {
  return sizeof(T) == 2 && groups_of_half_warp * num_tensors <= 2;
}

/// What a thread reads of a tensor for each of its groups: sixteen values that follow each other.
template <typename T>
struct SixteenPacked {
  static constexpr int kParts = 16 / kGroup;

  PackedGroup<T> parts[kParts];

  __device__ __forceinline__ void load(const T* from) {
#pragma unroll
    for (int part = 0; part < kParts; ++part) parts[part].load(from, part * kGroup, 16, true);
  }
  __device__ __forceinline__ void unpack(float (&x)[16]) const {
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      float values[kGroup];
      parts[part].unpack(values);
#pragma unroll
      for (int j = 0; j < kGroup; ++j) x[part * kGroup + j] = values[j];
    }
  }
  /// Rounded to T.
  __device__ __forceinline__ void pack(const float (&x)[16]) {
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      float values[kGroup];
#pragma unroll
      for (int j = 0; j < kGroup; ++j) values[j] = x[part * kGroup + j];
      parts[part].pack(values);
    }
  }
  __device__ __forceinline__ void store(T* to) const {
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      auto* words = reinterpret_cast<uint4*>(to + part * kGroup);
#pragma unroll
      for (std::size_t i = 0; i < sizeof(parts[part].words) / sizeof(uint4); ++i) words[i] = parts[part].words[i];
    }
  }
};

/// A thread's share of what a tensor's next row brings to shared memory. Only the thread itself reads it, so that it
/// waits for nothing but its own copies.
template <typename T, bool kAhead>
class NextRow {
 public:
  static constexpr int kBytes = kAhead ? 16 * static_cast<int>(sizeof(T)) : 0;  // of a thread and group

  /// @param shared  [groups of a half warp, kBytes / 16, threads] x 16 bytes
  __device__ __forceinline__ explicit NextRow(unsigned char* shared) : own_(shared + threadIdx.x * kStep) {}

  /// Group i of the thread. What take() gave before has been used by then.
  __device__ __forceinline__ void start(int i, const T* from) const {
    if constexpr (kAhead) {
#pragma unroll
      for (int part = 0; part < kParts; ++part) copy_async(at(i, part), from + part * kGroup);
    }
  }
  /// After the copies have arrived. @param from  as it was started
  __device__ __forceinline__ SixteenPacked<T> take(int i, const T* from) const {
    SixteenPacked<T> packed;
    if constexpr (kAhead) {
#pragma unroll
      for (int part = 0; part < kParts; ++part)
        packed.parts[part].words[0] = *reinterpret_cast<const uint4*>(at(i, part));
    } else {
      packed.load(from);
    }
    return packed;
  }

 private:
  static constexpr int kStep = 16, kParts = SixteenPacked<T>::kParts;  // eight values of bf16 a step

  __device__ __forceinline__ unsigned char* at(int i, int part) const {
    return own_ + (i * kParts + part) * static_cast<int>(blockDim.x) * kStep;
  }

  unsigned char* own_;
};

/// A block's place among the groups of a row.
struct RowPlace {
  int num_rows, num_groups;
  int own = static_cast<int>(threadIdx.x) / Group256::kLanes, lane = lane_id() % Group256::kLanes;
  int num_halves = static_cast<int>(blockDim.x) / Group256::kLanes;

  /// Group i of the thread; past the row's end where not has().
  __device__ __forceinline__ int group(int i) const { return own + i * num_halves; }
  __device__ __forceinline__ bool has(int i) const { return group(i) < num_groups; }
  /// Where the thread's values of it begin.
  __device__ __forceinline__ int first_value(int i) const {
    return group(i) * Group256::kWidth + lane * Group256::kValues;
  }
  __device__ __forceinline__ int width() const { return num_groups * Group256::kWidth; }

  /// Shared memory behind what the rotation exchanges.
  __device__ __forceinline__ unsigned char* next_rows() const {
    return dynamic_shared() + static_cast<std::size_t>(num_halves) * Group256::kFloats * sizeof(float);
  }
};

/// A block's rows. A Source has, for a row and group i of the thread:
///   start(row, i)      begins to read, for groups that are there
///   begin(row)         once what was started for the row has arrived; may wait for the whole block
///   values(row, i, x)  the sixteen values, by whole warps, and for groups past the row's end for no use
/// @param kGroups  groups of a half warp
template <int kGroups, typename Source>
__device__ __forceinline__ void quantize_rows(const RowPlace& place, const QuantizeArgs& args, Source& source) {
  constexpr int kValues = Group256::kValues;
  __shared__ float partial[2][kWarpSize];  // in turns: a row's may still be read when the next one's are written
  float* exchange = reinterpret_cast<float*>(dynamic_shared()) + place.own * Group256::kFloats;
  const bool is_as_produced = args.mode == Int8Activations::kPrecise && !args.input_factor;
#pragma unroll
  for (int i = 0; i < kGroups; ++i) {
    if (place.has(i)) source.start(static_cast<int>(blockIdx.x), i);
  }
  commit_copies();
  int turn = 0;
  const int step = static_cast<int>(gridDim.x);
  for (int row = static_cast<int>(blockIdx.x); row < place.num_rows; row += step, turn ^= 1) {
    wait_for_copies<0>();
    source.begin(row);
    float x[kGroups][kValues];
    float largest = 0;  // of twice the rotated values
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      source.values(row, i, x[i]);
      if (!is_as_produced) {
        const int first = place.has(i) ? place.first_value(i) : 0;
#pragma unroll
        for (int j = 0; j < kValues; ++j)
          x[i][j] = scaled_input(x[i][j], args.input_factor ? args.input_factor + first + j : nullptr, args.mode);
      }
      sync_warp();  // the exchange was read
      Group256::rotate(x[i], place.lane, exchange);
      if (place.has(i) && row + step < place.num_rows) source.start(row + step, i);
      if (args.mode == Int8Activations::kComfyFallback) {
#pragma unroll
        for (int j = 0; j < kValues; ++j) x[i][j] = round_to<bfloat16>(x[i][j]);
      }
      if (place.has(i)) {
#pragma unroll
        for (int j = 0; j < kValues; ++j) largest = larger_magnitude(largest, x[i][j]);
      }
    }
    commit_copies();
    const float scale = scale_of(multiply_rounded(0.5f, block_magnitude(largest, partial[turn])));
    const CodeMaker make_code(scale, 0.5f, args.mode);
    if (threadIdx.x == 0) args.scale[row] = scale;
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      sync_warp();
      Group256::store_codes(x[i], place.lane, make_code, exchange,
                            place.has(i) ? args.codes.row(row) + place.group(i) * Group256::kWidth : nullptr);
    }
  }
}

/// Of a row that choose_quantizer() gives to these kernels.
inline int groups_of_256(std::int64_t width) {
  return static_cast<int>(width / Group256::kWidth);
}

/// What a launch has to know of the device.
struct QuantizerDevice {
  int num_sms, shared_bytes;  // multiprocessors, and shared memory of one for blocks
};

/// How a kernel that quantises rows with quantize_rows() is started, and which of its variants:
/// body(std::integral_constant<int, kGroups>, LaunchShape). As many blocks as run at once, or as there are rows.
/// @param next_row_bytes  of a thread and group, for so many groups of a half warp: int(int kGroups)
template <typename NextRowBytes, typename Body>
void with_group_256_launch(std::int64_t num_rows, std::int64_t width, const QuantizerDevice& device,
                           const NextRowBytes& next_row_bytes, const Body& body) {
  const int num_groups = groups_of_256(width);
  const auto start = [&](auto groups) {
    constexpr int kGroups = decltype(groups)::value;
    const std::int64_t num_halves = (num_groups + kGroups - 1) / kGroups;
    const std::int64_t num_threads = (num_halves + 1) / 2 * kWarpSize;
    const std::int64_t shared_bytes =
        num_threads / Group256::kLanes * Group256::kFloats * static_cast<std::int64_t>(sizeof(float)) +
        num_threads * kGroups * next_row_bytes(kGroups);
    constexpr std::int64_t kThreadsAtOnce = most_threads(kGroups) * blocks_at_once(kGroups);
    const std::int64_t blocks =
        std::clamp<std::int64_t>(device.shared_bytes / shared_bytes, 1, kThreadsAtOnce / num_threads);
    body(groups, LaunchShape{.grid = dim3(blocks_for(std::min(num_rows, blocks * device.num_sms), 1)),
                             .num_threads = static_cast<int>(num_threads),
                             .shared_bytes = static_cast<std::size_t>(shared_bytes),
                             .starts_early = true});
  };
  switch (groups_of_half_warp(num_groups)) {
    case 1:
      return start(std::integral_constant<int, 1>());
    case 2:
      return start(std::integral_constant<int, 2>());
    default:
      return start(std::integral_constant<int, 4>());
  }
}

}  // namespace treble::cuda
