#include "cuda/attention_wgmma_sm90.cuh"

#include <array>
#include <cstddef>
#include <span>

#include "cuda/borders.h"
#include "cuda/cuda_ops.h"
#include "cuda/launch.cuh"
#include "cuda/tensor_map.h"

namespace treble::cuda {
namespace {

/// Boxes of 64 features of so many tokens of one head of a view [T, heads, head_dim].
CUtensorMap head_rows_map(const TensorView& view, int tokens) {
  using Dimension = BoxedTensor::Dimension;
  constexpr std::int64_t kElement = 2;
  const std::array<Dimension, 3> dimensions = {
      Dimension{view.size(2), 0, attention_wgmma::kBoxFeatures},
      Dimension{view.size(1), view.stride(1) * kElement, 1},
      Dimension{view.size(0), view.stride(0) * kElement, tokens},
  };
  return make_tensor_map({view.data(), dimensions, CU_TENSOR_MAP_SWIZZLE_128B});
}

}  // namespace

void CudaOps::attention_wgmma_sm90(const Attention& args) {
  using namespace attention_wgmma;
  const auto num_heads = static_cast<std::int32_t>(args.query.size(1));
  const AttentionPlan plan = plan_attention_sm90(borders_of(args.cu_seqlens_q), borders_of(args.cu_seqlens_k),
                                                 args.causal, num_heads, num_sms_);
  constexpr float kLog2E = 1.4426950408889634f;
  const AttentionWgmma wgmma{head_rows_map(args.query, kQueries),
                             head_rows_map(args.key, kKeys),
                             head_rows_map(args.value, kKeys),
                             const_heads<bfloat16>(args.gate),
                             args.gate ? head_rows_map(args.gate, kQueries) : CUtensorMap{},
                             rows_of<bfloat16>(args.out.plain),
                             staging_.bring(plan.tiles.data(), static_cast<std::int64_t>(plan.tiles.size())),
                             staging_.bring(plan.items.data(), static_cast<std::int64_t>(plan.items.size())),
                             num_heads,
                             num_heads / static_cast<std::int32_t>(args.key.size(1)),
                             args.causal,
                             args.scale * kLog2E};
  const int num_consumers = plan.queries_per_tile / kQueries;
  launch("attention_wgmma_sm90", stream_.get(),
         {.grid = dim3(static_cast<unsigned>(plan.num_blocks)),
          .num_threads = num_threads(num_consumers),
          .shared_bytes = shared_bytes(num_consumers),
          .starts_early = true},
         num_consumers == 1 ? attention_wgmma_kernel<1> : attention_wgmma_kernel<2>, wgmma);
}

}  // namespace treble::cuda
