#pragma once

#include <cstdint>

#include "cuda/kernel_set.h"
#include "tensor/dtype.h"

namespace treble::cuda {

enum class DeltaRuleKernel {
  kSteps,      ///< token after token in fp32, any head sizes: delta_rule_steps.cu
  kMmaSm80,    ///< chunks of 64 tokens, mma.sync with IEEE half operands: delta_rule_chunks_sm80.cu
  kWgmmaSm90,  ///< the same with Hopper's wgmma along the chunks: delta_rule_states_wgmma_sm90.cu
};

struct DeltaRuleShape {
  DType dtype;
  std::int64_t key_head_dim, value_head_dim;
  bool is_aligned;  ///< every row of query, key, value and out starts at a multiple of 16 bytes
};

/// @param compute_capability  10 times the major number, plus the minor one
DeltaRuleKernel choose_delta_rule(const DeltaRuleShape& shape, int compute_capability, KernelSet kernels);

/// Warpgroups with which a block of kWgmmaSm90 computes, each with 64 features of a value head.
/// @param num_heads  value heads of all sequences that have tokens
/// @param num_sms  multiprocessors of the device
/// @return 1 or 2
int choose_delta_rule_warpgroups(std::int64_t num_heads, std::int64_t value_head_dim, int num_sms);

}  // namespace treble::cuda
