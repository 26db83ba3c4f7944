#include "cuda/linear_int8_wgmma_sm90.h"

#include "cuda/wgmma_epilogues_sm90.cuh"
#include "cuda/wgmma_int8_sm90.cuh"
#include "cuda/wgmma_launch_sm90.cuh"

// Products of int8 matrices on Hopper's wgmma: the tiles of wgmma_product_sm90.cuh that are built. A sum becomes a
// value by the scale of its token and the scale and bias of its weight row. Every consumer reads those of its tile
// while it multiplies, into shared memory.
//
// Limit: 1,979 TOPS of the tensor cores, some 1,400 at the power limit of an H200; a multiprocessor gets some 30 bytes
// a cycle from the L2 cache, which a tile of 256 rows x 160 tokens in pairs just stays below.

namespace treble::cuda {
namespace wgmma_sm90 {

struct Int8Operand {
  using Sum = std::int32_t;
  static constexpr int kElementBytes = 1;
  static constexpr CUtensorMapDataType kType = CU_TENSOR_MAP_DATA_TYPE_UINT8;

  template <int kTokens>
  static __device__ __forceinline__ void multiply(std::int32_t (&sums)[kTokens / 2], std::uint64_t weight,
                                                  std::uint64_t tokens, int adds) {
    WgmmaInt8<kTokens>::multiply(sums, weight, tokens, adds);
  }

  // In shared memory, of a consumer: scales of the tile's tokens, scales and biases of its weight rows.
  static constexpr int kMostTokens = 256, kMostRows = 128;
  static constexpr int kRowScales = kMostTokens * 4, kBiases = kRowScales + kMostRows * 4;
  static constexpr int kScaleBytes = kBiases + kMostRows * 4;

  struct Scales {
    const float* token_scale;
    int num_tokens, num_slabs;
    // Of the two halves of a slab, eight rows each; the next slab's are `slab_features` further on.
    const float *row_scale[2], *bias[2];
    int slab_features;

    /// Of a tile that begins with this slab and this token; zeros beyond both ends.
    template <int kRows, int kTokens>
    __device__ __forceinline__ void load(std::uint32_t to, int first_slab, int first_token) const {
      static_assert(kRows <= kMostRows && kTokens <= kMostTokens && kRows <= kWarpgroup);
      const int thread = static_cast<int>(threadIdx.x) % kWarpgroup;
#pragma unroll
      for (int i = thread; i < kTokens; i += kWarpgroup)
        store_float(to + i * 4, first_token + i < num_tokens ? token_scale[first_token + i] : 0);
      if (thread >= kRows) return;
      const int slab = first_slab + thread / kSlabRows, half = thread / 8 % 2;
      const std::int64_t feature = std::int64_t{slab} * slab_features + thread % 8;
      const float* biases = half == 0 ? bias[0] : bias[1];
      const bool exists = slab < num_slabs;
      store_float(to + kRowScales + thread * 4, exists ? (half == 0 ? row_scale[0] : row_scale[1])[feature] : 0);
      // x + -0 is x, also where x is 0.
      store_float(to + kBiases + thread * 4, exists && biases != nullptr ? biases[feature] : -0.0f);
    }
  };

  /// Of a thread's two rows in a block of 64.
  struct Scaling {
    std::uint32_t token_scales;
    float row_scale[2], bias[2];

    __device__ __forceinline__ Scaling(std::uint32_t scales, int row) : token_scales(scales + lane_id() % 4 * 8) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        row_scale[half] = load_float(scales + kRowScales + (row + 8 * half) * 4);
        bias[half] = load_float(scales + kBiases + (row + 8 * half) * 4);
      }
    }
    /// @param token_group  of eight tokens
    template <typename Epilogue>
    __device__ __forceinline__ void finish(const std::int32_t* sums, int token_group,
                                           std::uint32_t (&packed)[Epilogue::kGroups]) const {
      const float2 token_scale = load_floats(token_scales + token_group * 32);
      float values[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        // Each step rounded, as on the CPU: not to be put together to one multiplication and addition.
        const float scaled = __fmul_rn(__int2float_rn(sums[i]), i % 2 == 0 ? token_scale.x : token_scale.y);
        values[i] = __fadd_rn(__fmul_rn(scaled, row_scale[i / 2]), bias[i / 2]);
      }
      Epilogue::finish(values, packed);
    }
  };
};

}  // namespace wgmma_sm90

namespace {

using namespace wgmma_sm90;

template <typename Epilogue>
void launch_with(std::string_view name, const Matrices& of, const Int8Operand::Scales& scales, WgmmaInt8Tile tile,
                 int num_sms, cudaStream_t stream) {
  const auto launch_as = [&]<int kConsumers, int kBlocks, int kTokens, Shares kShares>() {
    launch_tiles<Config<Int8Operand, kConsumers, kBlocks, kTokens, kShares, Epilogue>>(name, of, scales, num_sms,
                                                                                       stream);
  };
  switch (tile) {
    case WgmmaInt8Tile::k256x192:
      return launch_as.template operator()<2, 2, 192, Shares::kWeight>();
    case WgmmaInt8Tile::k256x160:
      return launch_as.template operator()<2, 2, 160, Shares::kWeight>();
    case WgmmaInt8Tile::k256x128:
      return launch_as.template operator()<2, 2, 128, Shares::kWeight>();
    case WgmmaInt8Tile::k192x160:
      return launch_as.template operator()<3, 1, 160, Shares::kWeight>();
    case WgmmaInt8Tile::k128x256:
      return launch_as.template operator()<2, 1, 256, Shares::kTokens>();
    case WgmmaInt8Tile::k128x192:
      return launch_as.template operator()<2, 1, 192, Shares::kTokens>();
    case WgmmaInt8Tile::k128x160:
      return launch_as.template operator()<2, 1, 160, Shares::kWeight>();
    case WgmmaInt8Tile::k128x128:
      return launch_as.template operator()<2, 1, 128, Shares::kTokens>();
    case WgmmaInt8Tile::k128x96:
      return launch_as.template operator()<2, 1, 96, Shares::kTokens>();
    case WgmmaInt8Tile::k128x64:
      return launch_as.template operator()<2, 1, 64, Shares::kTokens>();
    case WgmmaInt8Tile::k64x64:
      return launch_as.template operator()<1, 1, 64, Shares::kTokens>();
    case WgmmaInt8Tile::k384x128:
      return launch_as.template operator()<3, 2, 128, Shares::kTokens>();
    case WgmmaInt8Tile::k192x128:
      return launch_as.template operator()<3, 1, 128, Shares::kTokens>();
    case WgmmaInt8Tile::k320x64:
      return launch_as.template operator()<5, 1, 64, Shares::kTokens>();
    case WgmmaInt8Tile::k192x64:
      return launch_as.template operator()<3, 1, 64, Shares::kTokens>();
  }
}

const float* after(const float* begin, int count) {
  return begin == nullptr ? nullptr : begin + count;
}

}  // namespace

void swiglu_int8_wgmma_sm90(const Int8SwigluProduct& product, WgmmaInt8Tile tile, int num_sms, cudaStream_t stream) {
  if (product.num_tokens == 0 || product.out_features == 0) return;
  const std::int64_t num_slabs = product.out_features / 8;
  launch_with<SwigluEpilogue>("linear_swiglu_int8_wgmma_sm90",
                              {.num_tokens = product.num_tokens,
                               .in_features = product.in_features,
                               .out_features = product.out_features,
                               .input = product.input.codes,
                               .input_stride = product.input.codes_stride,
                               .weight = product.gate.codes,
                               .pair_stride_bytes = product.up.codes - product.gate.codes,
                               .slab_stride_bytes = 8 * product.in_features,
                               .num_slabs = num_slabs,
                               .out = product.out,
                               .out_stride = product.out_stride},
                              {.token_scale = product.input.scale,
                               .num_tokens = static_cast<int>(product.num_tokens),
                               .num_slabs = static_cast<int>(num_slabs),
                               .row_scale = {product.gate.row_scale, product.up.row_scale},
                               .bias = {product.gate.bias, product.up.bias},
                               .slab_features = 8},
                              tile, num_sms, stream);
}

void linear_int8_wgmma_sm90(const Int8Product& product, WgmmaInt8Tile tile, int num_sms, cudaStream_t stream) {
  if (product.num_tokens == 0 || product.out_features == 0) return;
  const std::int64_t num_slabs = product.out_features / kSlabRows;
  const Int8Weight& weight = product.weight;
  const Matrices matrices = {.num_tokens = product.num_tokens,
                             .in_features = product.in_features,
                             .out_features = product.out_features,
                             .input = product.input.codes,
                             .input_stride = product.input.codes_stride,
                             .weight = weight.codes,
                             .pair_stride_bytes = 8 * product.in_features,
                             .slab_stride_bytes = kSlabRows * product.in_features,
                             .num_slabs = num_slabs,
                             .out = product.out,
                             .out_stride = product.out_stride};
  const Int8Operand::Scales scales = {.token_scale = product.input.scale,
                                      .num_tokens = static_cast<int>(product.num_tokens),
                                      .num_slabs = static_cast<int>(num_slabs),
                                      .row_scale = {weight.row_scale, after(weight.row_scale, 8)},
                                      .bias = {weight.bias, after(weight.bias, 8)},
                                      .slab_features = kSlabRows};
  if (product.adds)
    return launch_with<AddEpilogue>("linear_add_int8_wgmma_sm90", matrices, scales, tile, num_sms, stream);
  launch_with<PlainEpilogue>("linear_int8_wgmma_sm90", matrices, scales, tile, num_sms, stream);
}

}  // namespace treble::cuda
