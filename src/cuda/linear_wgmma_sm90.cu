#include "cuda/linear_wgmma_sm90.h"

#include "cuda/wgmma_epilogues_sm90.cuh"
#include "cuda/wgmma_launch_sm90.cuh"

// Products of bf16 matrices on Hopper's wgmma: the tiles of wgmma_product_sm90.cuh that are built: two along the tokens
// side by side, or, of few tokens, two along the weight. Those of 320 and 384 rows are for 34,816, of which 136 tiles
// of 256 would be one round of 132 multiprocessors and another of four.
//
// Limit: device memory where tokens are few; 989 TFLOP/s of the tensor cores, 690 at the power limit of an H200.

namespace treble::cuda {
namespace wgmma_sm90 {

struct Bf16Operands {
  using Sum = float;
  static constexpr int kElementBytes = 2;
  static constexpr CUtensorMapDataType kType = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  static constexpr int kScaleBytes = 0;

  template <int kTokens>
  static __device__ __forceinline__ void multiply(float (&sums)[kTokens / 2], std::uint64_t weight,
                                                  std::uint64_t tokens, int adds) {
    Wgmma<kTokens>::multiply(sums, weight, tokens, adds);
  }

  /// Sums are values already.
  struct Scales {
    template <int kRows, int kTokens>
    __device__ __forceinline__ void load(std::uint32_t, int, int) const {}
  };
  struct Scaling {
    __device__ __forceinline__ Scaling(std::uint32_t, int) {}
    template <typename Epilogue>
    __device__ __forceinline__ void finish(const float* sums, int, std::uint32_t (&packed)[Epilogue::kGroups]) const {
      Epilogue::finish(sums, packed);
    }
  };
};

}  // namespace wgmma_sm90

namespace {

using namespace wgmma_sm90;

template <typename Epilogue>
void launch_with(std::string_view name, const Matrices& of, WgmmaTile tile, int num_sms, cudaStream_t stream) {
  const auto launch_as = [&]<int kConsumers, int kBlocks, int kTokens, Shares kShares>() {
    launch_tiles<Config<Bf16Operands, kConsumers, kBlocks, kTokens, kShares, Epilogue>>(name, of, {}, num_sms, stream);
  };
  switch (tile) {
    case WgmmaTile::k256x192:
      return launch_as.template operator()<2, 2, 192, Shares::kWeight>();
    case WgmmaTile::k256x160:
      return launch_as.template operator()<2, 2, 160, Shares::kWeight>();
    case WgmmaTile::k256x128:
      return launch_as.template operator()<2, 2, 128, Shares::kWeight>();
    case WgmmaTile::k192x152:
      return launch_as.template operator()<3, 1, 152, Shares::kWeight>();
    case WgmmaTile::k128x256:
      return launch_as.template operator()<2, 1, 256, Shares::kWeight>();
    case WgmmaTile::k384x128:
      return launch_as.template operator()<3, 2, 128, Shares::kTokens>();
    case WgmmaTile::k192x128:
      return launch_as.template operator()<3, 1, 128, Shares::kTokens>();
    case WgmmaTile::k128x128:
      return launch_as.template operator()<2, 1, 128, Shares::kTokens>();
    case WgmmaTile::k320x64:
      return launch_as.template operator()<5, 1, 64, Shares::kTokens>();
    case WgmmaTile::k192x64:
      return launch_as.template operator()<3, 1, 64, Shares::kTokens>();
    case WgmmaTile::k128x64:
      return launch_as.template operator()<2, 1, 64, Shares::kTokens>();
    case WgmmaTile::k64x64:
      return launch_as.template operator()<1, 1, 64, Shares::kTokens>();
  }
}

}  // namespace

void swiglu_wgmma_sm90(const SwigluProduct& product, WgmmaTile tile, int num_sms, cudaStream_t stream) {
  if (product.num_tokens == 0 || product.out_features == 0) return;
  const auto* gate = static_cast<const std::byte*>(product.gate);
  launch_with<SwigluEpilogue>("linear_swiglu_wgmma_sm90",
                              {.num_tokens = product.num_tokens,
                               .in_features = product.in_features,
                               .out_features = product.out_features,
                               .input = product.input,
                               .input_stride = product.input_stride,
                               .weight = gate,
                               .pair_stride_bytes = static_cast<const std::byte*>(product.up) - gate,
                               .slab_stride_bytes = 8 * product.in_features * 2,
                               .num_slabs = product.out_features / 8,
                               .out = product.out,
                               .out_stride = product.out_stride},
                              tile, num_sms, stream);
}

void linear_wgmma_sm90(const PlainProduct& product, WgmmaTile tile, int num_sms, cudaStream_t stream) {
  if (product.num_tokens == 0 || product.out_features == 0) return;
  const std::int64_t eight_rows = 8 * product.in_features * 2;
  const Matrices matrices = {.num_tokens = product.num_tokens,
                             .in_features = product.in_features,
                             .out_features = product.out_features,
                             .input = product.input,
                             .input_stride = product.input_stride,
                             .weight = product.weight,
                             .pair_stride_bytes = eight_rows,
                             .slab_stride_bytes = 2 * eight_rows,
                             .num_slabs = product.out_features / kSlabRows,
                             .out = product.out,
                             .out_stride = product.out_stride};
  if (product.adds) return launch_with<AddEpilogue>("linear_add_wgmma_sm90", matrices, tile, num_sms, stream);
  launch_with<PlainEpilogue>("linear_wgmma_sm90", matrices, tile, num_sms, stream);
}

}  // namespace treble::cuda
