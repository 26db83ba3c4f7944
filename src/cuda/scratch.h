#pragma once

#include <cstdint>

#include "tensor/tensor_view.h"
#include "tensor/workspace.h"

// The scratch memory inside operations. What an operation takes and what the plan counts is taken here.

namespace treble::cuda {

inline constexpr int kProductTerms = 3;  // bf16 terms of an fp32 input (linear.cu)

/// Of a product whose input is fp32, or whose bias meets an fp32 output.
struct ProductScratch {
  TensorView terms;  ///< [kProductTerms * T, in_features] bf16; empty where the input is bf16
  TensorView sums;   ///< [T, out_features] f32; empty where the output is f32
};
ProductScratch take_product_scratch(Workspace& scratch, const TensorView& input, DType out_dtype,
                                    std::int64_t out_features);

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
