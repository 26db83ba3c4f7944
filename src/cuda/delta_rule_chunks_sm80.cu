#include "cuda/delta_rule_chunks_sm80.cuh"

#include <algorithm>
#include <vector>

#include "cuda/cuda_ops.h"
#include "cuda/scratch.h"

namespace treble::cuda {
namespace {

using namespace delta_rule;

static_assert(kChunk == kDeltaRuleChunk);

struct Plan {
  std::vector<Chunk> chunks;
  std::vector<Sequence> sequences;  // the longest first, so that the last block to start is a short one
};

Plan make_plan(const TensorView& cu_seqlens) {
  const std::int32_t* borders = cu_seqlens.as<std::int32_t>();
  Plan plan;
  for (std::int32_t n = 0; n + 1 < cu_seqlens.size(0); ++n) {
    if (borders[n] == borders[n + 1]) continue;
    const auto first_chunk = static_cast<std::int32_t>(plan.chunks.size());
    for (std::int32_t token = borders[n]; token < borders[n + 1]; token += kChunk)
      plan.chunks.push_back({token, std::min(kChunk, borders[n + 1] - token)});
    plan.sequences.push_back({first_chunk, static_cast<std::int32_t>(plan.chunks.size()) - first_chunk, n});
  }
  std::stable_sort(plan.sequences.begin(), plan.sequences.end(),
                   [](const Sequence& a, const Sequence& b) { return a.num_chunks > b.num_chunks; });
  return plan;
}

}  // namespace

void CudaOps::delta_rule_chunks(const GatedDeltaRule& args, DeltaRuleKernel kernel) {
  const std::int64_t num_v_heads = args.value.size(1), value_dim = args.value.size(2);
  const Plan plan = make_plan(args.cu_seqlens);
  const auto num_chunks = static_cast<std::int64_t>(plan.chunks.size());
  const auto num_seqs = static_cast<std::int64_t>(plan.sequences.size());
  const TensorView& state = args.recurrent_state;

  const Workspace::Scope scope(scratch_);
  const std::int64_t num_k_heads = args.key.size(1);
  const DeltaRuleScratch taken = take_delta_rule_scratch(scratch_, num_chunks, num_k_heads, num_v_heads);
  const ChunkMatrices matrices{static_cast<std::uint16_t*>(taken.rows.data()),
                               static_cast<std::uint16_t*>(taken.triangles.data()), taken.gates.as<float>()};
  const Operands operands{const_heads<bfloat16>(args.query),
                          const_heads<bfloat16>(args.key),
                          const_heads<bfloat16>(args.value),
                          heads_of<bfloat16>(args.out),
                          const_rows<float>(args.log_decay),
                          const_rows<float>(args.beta),
                          state ? state.as<float>() : nullptr,
                          {state ? state.stride(0) : 0, state ? state.stride(1) : 0, state ? state.stride(2) : 0},
                          staging_.bring(plan.chunks.data(), num_chunks),
                          staging_.bring(plan.sequences.data(), num_seqs),
                          matrices,
                          static_cast<int>(num_k_heads),
                          static_cast<int>(num_v_heads),
                          static_cast<int>(num_v_heads / num_k_heads),
                          args.scale};
  make_chunk_matrices(stream_.get(), operands, num_chunks);
  if (kernel == DeltaRuleKernel::kWgmmaSm90) {
    const int num_warpgroups = choose_delta_rule_warpgroups(num_seqs * num_v_heads, value_dim, num_sms_);
    run_chunk_states_wgmma(stream_.get(), operands, num_seqs, value_dim, num_warpgroups);
  } else {
    run_chunk_states(stream_.get(), operands, num_seqs, value_dim, static_cast<std::size_t>(shared_bytes_per_block_));
  }
}

}  // namespace treble::cuda
