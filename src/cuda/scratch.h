#pragma once

#include <cstdint>

#include "tensor/tensor_view.h"
#include "tensor/workspace.h"

// The scratch memory inside operations. What an operation takes and what the plan counts is taken here.

namespace treble::cuda {

/// bf16 terms that an fp32 input of a product becomes: 16 of its 24 bits beside bf16 activations, else all (linear.cu).
constexpr int num_product_terms(DType activation_dtype) {
  return activation_dtype == DType::kBF16 ? 2 : 3;
}
/// [num_product_terms * T, in_features] bf16
TensorView take_terms(Workspace& scratch, DType activation_dtype, std::int64_t num_tokens, std::int64_t in_features);
/// Sums of a product before they are rounded, or added to what is there, [T, out_features] f32.
TensorView take_sums(Workspace& scratch, std::int64_t num_tokens, std::int64_t out_features);
/// The bias of a product that stays in fp32, [out_features] f32.
TensorView take_bias(Workspace& scratch, std::int64_t out_features);

/// Where rows of an NF4 weight become bf16, [rows, in_features]: all that a product reads, or as many of them at once
/// as kNf4RowBytes hold, in whole slabs.
TensorView take_nf4_rows(Workspace& scratch, std::int64_t out_features, std::int64_t in_features);

/// What tiles of the head's attention leave of each query, where ranges of its keys are put together.
struct FewQueriesScratch {
  TensorView sums;            ///< [rows, dim] f32
  TensorView maxima, totals;  ///< [rows] f32
};
inline constexpr std::int64_t kFewQueriesDim = 64;  // features of a head, padded
/// @param num_rows  tiles * heads * kFewQueriesPerTile
FewQueriesScratch take_few_queries_scratch(Workspace& scratch, std::int64_t num_rows);

/// Gate and up side by side, [T, 2 * intermediate_size].
TensorView take_swiglu_scratch(Workspace& scratch, DType activation_dtype, std::int64_t num_tokens,
                               std::int64_t intermediate_size);

/// Chunks of the gated delta rule, each within one sequence.
inline constexpr int kDeltaRuleChunk = 64;  // tokens
std::int64_t count_delta_rule_chunks(const TensorView& cu_seqlens);

struct DeltaRuleScratch {
  TensorView rows;       ///< [chunks * num_k_heads, 4, 64, 64] 16-bit: keys and queries, half of their features each
  TensorView triangles;  ///< [chunks * num_v_heads, 2, 64, 64] 16-bit
  TensorView gates;      ///< [chunks * num_v_heads, 2, 64] f32
};
DeltaRuleScratch take_delta_rule_scratch(Workspace& scratch, std::int64_t num_chunks, std::int64_t num_k_heads,
                                         std::int64_t num_v_heads);

}  // namespace treble::cuda
