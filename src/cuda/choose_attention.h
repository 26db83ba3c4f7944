#pragma once

#include <cstdint>

#include "cuda/kernel_set.h"
#include "tensor/dtype.h"

namespace treble::cuda {

enum class AttentionKernel {
  kRows,        ///< fp32 arithmetic, a block for each query row, any head size: attention_rows.cu
  kFewQueries,  ///< mma.sync as exact as fp32, ranges of keys side by side: attention_few_queries.cu
  kMmaSm80,     ///< mma.sync in bf16, tiles of 64 queries: attention_mma_sm80.cu
  kWgmmaSm90,   ///< Hopper's wgmma in bf16, heads of 256: attention_wgmma_sm90.cu
};

struct AttentionShape {
  DType dtype;
  std::int64_t num_queries, head_dim;
  bool is_aligned;  ///< every row of query, key, value, gate and result starts at a multiple of 16 bytes
  bool has_positive_scale = true;
  bool is_causal = false, has_gate = false;
};

/// @param compute_capability  10 times the major number, plus the minor one
AttentionKernel choose_attention(const AttentionShape& shape, int compute_capability, KernelSet kernels);

/// The head size that the mma.sync kernel is built for and that holds this one; 0 if none does.
std::int64_t padded_head_dim(std::int64_t head_dim);

}  // namespace treble::cuda
