#pragma once

#include <cstdint>

#include "cuda/kernel_set.h"
#include "tensor/dtype.h"

namespace treble::cuda {

enum class DeltaRuleKernel {
  kSteps,    ///< token after token in fp32, any head sizes: delta_rule_steps.cu
  kMmaSm80,  ///< chunks of 64 tokens, mma.sync with IEEE half operands: delta_rule_chunks_sm80.cu
};

struct DeltaRuleShape {
  DType dtype;
  std::int64_t key_head_dim, value_head_dim;
  bool is_aligned;  ///< every row of query, key, value and out starts at a multiple of 16 bytes
};

DeltaRuleKernel choose_delta_rule(const DeltaRuleShape& shape, KernelSet kernels);

}  // namespace treble::cuda
