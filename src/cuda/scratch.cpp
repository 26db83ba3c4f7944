#include "cuda/scratch.h"

#include <algorithm>

#include "cuda/memory_sizes.h"

namespace treble::cuda {

TensorView take_terms(Workspace& scratch, DType activation_dtype, std::int64_t num_tokens, std::int64_t in_features) {
  return scratch.take(DType::kBF16, {num_product_terms(activation_dtype) * num_tokens, in_features});
}

TensorView take_sums(Workspace& scratch, std::int64_t num_tokens, std::int64_t out_features) {
  return scratch.take(DType::kF32, {num_tokens, out_features});
}

TensorView take_bias(Workspace& scratch, std::int64_t out_features) {
  return scratch.take(DType::kF32, {out_features});
}

TensorView take_nf4_rows(Workspace& scratch, std::int64_t out_features, std::int64_t in_features) {
  constexpr std::int64_t kSlabs = 512;  // rows, two tiles of any product
  const auto fit = static_cast<std::int64_t>(kNf4RowBytes) / (2 * std::max<std::int64_t>(1, in_features));
  const std::int64_t most = std::max(kSlabs, fit / kSlabs * kSlabs);
  return scratch.take(DType::kBF16, {std::min(out_features, most), in_features});
}

FewQueriesScratch take_few_queries_scratch(Workspace& scratch, std::int64_t num_rows) {
  const TensorView sums = scratch.take(DType::kF32, {num_rows, kFewQueriesDim});
  const TensorView maxima = scratch.take(DType::kF32, {num_rows});
  return {sums, maxima, scratch.take(DType::kF32, {num_rows})};
}

TensorView take_swiglu_scratch(Workspace& scratch, DType activation_dtype, std::int64_t num_tokens,
                               std::int64_t intermediate_size) {
  return scratch.take(activation_dtype, {num_tokens, 2 * intermediate_size});
}

std::int64_t count_delta_rule_chunks(const TensorView& cu_seqlens) {
  const std::int32_t* borders = cu_seqlens.as<std::int32_t>();
  std::int64_t count = 0;
  for (std::int64_t n = 0; n + 1 < cu_seqlens.size(0); ++n)
    count += (borders[n + 1] - borders[n] + kDeltaRuleChunk - 1) / kDeltaRuleChunk;
  return count;
}

DeltaRuleScratch take_delta_rule_scratch(Workspace& scratch, std::int64_t num_chunks, std::int64_t num_k_heads,
                                         std::int64_t num_v_heads) {
  constexpr std::int64_t kChunk = kDeltaRuleChunk;
  const std::int64_t by_key = num_chunks * num_k_heads, by_value = num_chunks * num_v_heads;
  const TensorView rows = scratch.take(DType::kF16, {by_key, 4, kChunk, kChunk});
  const TensorView triangles = scratch.take(DType::kF16, {by_value, 2, kChunk, kChunk});
  return {rows, triangles, scratch.take(DType::kF32, {by_value, 2, kChunk})};
}

}  // namespace treble::cuda
