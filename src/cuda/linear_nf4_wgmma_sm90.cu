#include "cuda/linear_nf4_wgmma_sm90.h"

#include <cstddef>

#include "cuda/wgmma_epilogues_sm90.cuh"
#include "cuda/wgmma_launch_sm90.cuh"
#include "cuda/wgmma_nf4_product_sm90.cuh"

// Products with 4-bit weights: the tiles of wgmma_nf4_product_sm90.cuh that are built.
//
// Limit: the tensor cores as for bf16; below some 100 tokens decoding, 3.2 instructions a weight of the pipe that does
// 64 a cycle of a multiprocessor: 25e9 weights in 5.6 ms on an H200.

namespace treble::cuda {
namespace {

using namespace wgmma_sm90;

template <typename C>
void launch_codes(std::string_view name, const Matrices& of, const Nf4Layout& layout, int num_sms,
                  cudaStream_t stream) {
  using Dimension = BoxedTensor::Dimension;
  constexpr std::int64_t kElement = 2;  // bytes of the input's and the output's
  const std::array<Dimension, 4> codes = {Dimension{of.in_features / 2, 0, C::kCodeRowBytes},
                                          Dimension{8, of.in_features / 2, 8}, Dimension{2, of.pair_stride_bytes, 2},
                                          Dimension{of.num_slabs, of.slab_stride_bytes, C::kSlabs}};
  const std::array<Dimension, 2> input = {Dimension{of.in_features, 0, C::kTileK},
                                          Dimension{of.num_tokens, of.input_stride * kElement, C::kCopiedTokens}};
  const std::array<Dimension, 2> out = {Dimension{of.out_features, 0, C::kBoxFeatures},
                                        Dimension{of.num_tokens, of.out_stride * kElement, C::kTokens}};
  const CUtensorMap codes_map =
      make_tensor_map({of.weight, codes, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_DATA_TYPE_UINT8});
  const CUtensorMap input_map = make_tensor_map({of.input, input, CU_TENSOR_MAP_SWIZZLE_128B});
  const CUtensorMap out_map =
      make_tensor_map({of.out, out, C::kBoxRowBytes == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B});

  constexpr std::int64_t kUnitSlabs = C::kFeatureTiles * C::kSlabs;
  const std::int64_t num_token_units = (of.num_tokens + C::kTokens - 1) / C::kTokens;
  const Schedule schedule{
      .num_token_units = static_cast<int>(num_token_units),
      .num_feature_units = static_cast<int>((of.num_slabs + kUnitSlabs - 1) / kUnitSlabs),
      .token_units_in_group = units_in_group(num_token_units, C::kTokens * of.in_features * kElement),
      .num_stages = static_cast<int>(of.in_features / C::kTileK)};
  const std::int64_t num_clusters =
      std::min<std::int64_t>(std::max(1, num_sms / kClusterSize), num_token_units * schedule.num_feature_units);
  launch(name, stream,
         {.grid = dim3(static_cast<unsigned>(num_clusters * kClusterSize)),
          .num_threads = C::kThreads,
          .shared_bytes = C::kSharedBytes,
          .cluster_size = kClusterSize,
          .starts_early = true},
         linear_nf4_wgmma_kernel<C>, codes_map, input_map, out_map, schedule, layout);
}

template <typename Epilogue>
void launch_with(std::string_view name, const Matrices& of, const Nf4Layout& layout, WgmmaNf4Tile tile, int num_sms,
                 cudaStream_t stream) {
  const auto launch_as = [&]<int kConsumers, int kBlocks, int kTokens>() {
    launch_codes<Nf4Config<kConsumers, kBlocks, kTokens, Epilogue>>(name, of, layout, num_sms, stream);
  };
  switch (tile) {
    case WgmmaNf4Tile::k256x160:
      return launch_as.template operator()<2, 2, 160>();
    case WgmmaNf4Tile::k256x128:
      return launch_as.template operator()<2, 2, 128>();
    case WgmmaNf4Tile::k128x256:
      return launch_as.template operator()<2, 1, 256>();
    case WgmmaNf4Tile::k128x192:
      return launch_as.template operator()<2, 1, 192>();
    case WgmmaNf4Tile::k128x152:
      return launch_as.template operator()<2, 1, 152>();
    case WgmmaNf4Tile::k128x104:
      return launch_as.template operator()<2, 1, 104>();
    case WgmmaNf4Tile::k128x64:
      return launch_as.template operator()<2, 1, 64>();
  }
}

}  // namespace

void linear_nf4_wgmma_sm90(const Nf4Product& product, WgmmaNf4Tile tile, int num_sms, cudaStream_t stream) {
  if (product.num_tokens == 0 || product.out_features == 0) return;
  const std::int64_t row_bytes = product.in_features / 2, num_slabs = product.out_features / kSlabRows;
  const Matrices matrices = {.num_tokens = product.num_tokens,
                             .in_features = product.in_features,
                             .out_features = product.out_features,
                             .input = product.input,
                             .input_stride = product.input_stride,
                             .weight = product.weights.codes,
                             .pair_stride_bytes = 8 * row_bytes,
                             .slab_stride_bytes = kSlabRows * row_bytes,
                             .num_slabs = num_slabs,
                             .out = product.out,
                             .out_stride = product.out_stride};
  Nf4Layout layout = {.num_weights = product.weights.count,
                      .is_pair = false,
                      .num_slabs = static_cast<int>(num_slabs),
                      .nested_block_shift = product.weights.nested_block_shift};
  std::ranges::copy(product.weights.scales, layout.scales);
  if (product.adds)
    return launch_with<AddEpilogue>("linear_add_nf4_wgmma_sm90", matrices, layout, tile, num_sms, stream);
  launch_with<PlainEpilogue>("linear_nf4_wgmma_sm90", matrices, layout, tile, num_sms, stream);
}

void swiglu_nf4_wgmma_sm90(const Nf4SwigluProduct& product, WgmmaNf4Tile tile, int num_sms, cudaStream_t stream) {
  if (product.num_tokens == 0 || product.out_features == 0) return;
  const std::int64_t num_slabs = product.out_features / 8;
  const Matrices matrices = {.num_tokens = product.num_tokens,
                             .in_features = product.in_features,
                             .out_features = product.out_features,
                             .input = product.input,
                             .input_stride = product.input_stride,
                             .weight = product.gate_codes,
                             .pair_stride_bytes = product.up_codes - product.gate_codes,
                             .slab_stride_bytes = 8 * product.in_features / 2,
                             .num_slabs = num_slabs,
                             .out = product.out,
                             .out_stride = product.out_stride};
  launch_with<SwigluEpilogue>("linear_swiglu_nf4_wgmma_sm90", matrices,
                              {.scales = {product.gate, product.up},
                               .num_weights = 2,
                               .is_pair = true,
                               .num_slabs = static_cast<int>(num_slabs),
                               .nested_block_shift = product.nested_block_shift},
                              tile, num_sms, stream);
}

}  // namespace treble::cuda
