#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "cuda/launch.cuh"
#include "cuda/tensor_map.h"
#include "cuda/wgmma_product_sm90.cuh"

// The start of the kernel of wgmma_product_sm90.cuh: tensor maps, and which tiles there are.

namespace treble::cuda {
namespace wgmma_sm90 {

/// Two matrices and what they multiply to, or three for SwiGLU.
struct Matrices {
  std::int64_t num_tokens, in_features, out_features;
  const void* input;
  std::int64_t input_stride;
  const void* weight;
  std::int64_t pair_stride_bytes;  // from eight weight rows to the eight that share a slab with them
  std::int64_t slab_stride_bytes;  // from slab to slab
  std::int64_t num_slabs;
  void* out;
  std::int64_t out_stride;
};

/// Units of tokens whose inputs stay in the L2 cache while weights stream past: half of Hopper's 50 MB.
inline int units_in_group(std::int64_t num_units, std::int64_t unit_bytes) {
  constexpr std::int64_t kKeptBytes = std::int64_t{25} << 20;
  const std::int64_t most = std::max<std::int64_t>(1, kKeptBytes / unit_bytes);
  const std::int64_t num_groups = (num_units + most - 1) / most;
  return static_cast<int>((num_units + num_groups - 1) / num_groups);  // groups of the same size, but for the last
}

template <typename C>
void launch_tiles(std::string_view name, const Matrices& of, const typename C::Operands::Scales& scales, int num_sms,
                  cudaStream_t stream) {
  using Dimension = BoxedTensor::Dimension;
  constexpr CUtensorMapDataType kType = C::Operands::kType;
  constexpr std::int64_t kOutElement = 2;
  const std::int64_t row_bytes = of.in_features * C::Operands::kElementBytes;
  const std::array<Dimension, 4> weight = {Dimension{of.in_features, 0, C::kTileK}, Dimension{8, row_bytes, 8},
                                           Dimension{2, of.pair_stride_bytes, 2},
                                           Dimension{of.num_slabs, of.slab_stride_bytes, C::kCopiedSlabs}};
  const std::array<Dimension, 2> input = {
      Dimension{of.in_features, 0, C::kTileK},
      Dimension{of.num_tokens, of.input_stride * C::Operands::kElementBytes, C::kCopiedTokens}};
  const std::array<Dimension, 2> out = {Dimension{of.out_features, 0, C::kBoxFeatures},
                                        Dimension{of.num_tokens, of.out_stride * kOutElement, C::kTokens}};
  const CUtensorMap weight_map = make_tensor_map({of.weight, weight, CU_TENSOR_MAP_SWIZZLE_128B, kType});
  const CUtensorMap input_map = make_tensor_map({of.input, input, CU_TENSOR_MAP_SWIZZLE_128B, kType});
  const CUtensorMap out_map =
      make_tensor_map({of.out, out, C::kBoxRowBytes == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B});

  constexpr std::int64_t kUnitTokens = C::kTokenTiles * C::kTokens, kUnitSlabs = C::kFeatureTiles * C::kSlabs;
  const std::int64_t num_token_units = (of.num_tokens + kUnitTokens - 1) / kUnitTokens;
  const Schedule schedule{.num_token_units = static_cast<int>(num_token_units),
                          .num_feature_units = static_cast<int>((of.num_slabs + kUnitSlabs - 1) / kUnitSlabs),
                          .token_units_in_group = units_in_group(num_token_units, kUnitTokens * row_bytes),
                          .num_stages = static_cast<int>((of.in_features + C::kTileK - 1) / C::kTileK)};
  const std::int64_t num_clusters =
      std::min<std::int64_t>(std::max(1, num_sms / kClusterSize), num_token_units * schedule.num_feature_units);
  launch(name, stream,
         {.grid = dim3(static_cast<unsigned>(num_clusters * kClusterSize)),
          .num_threads = C::kThreads,
          .shared_bytes = C::kSharedBytes,
          .cluster_size = kClusterSize,
          .starts_early = true},
         linear_wgmma_kernel<C>, weight_map, input_map, out_map, schedule, scales);
}

}  // namespace wgmma_sm90
}  // namespace treble::cuda
