#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ops/ops.h"

namespace treble::testing {

/// One way to run the operations on this machine.
struct Backend {
  std::string name;  ///< "cpu AVX2 f32": device, instruction set, activation dtype
  std::function<std::unique_ptr<Ops>()> make;
  bool rounds_nf4_to_bf16 = false;  ///< NF4 weights of f16 and fp32 too
  double operand_unit = 0;  ///< half a unit in the last place of what products inside attention and the delta rule
                            ///< are rounded to; 0: they are fp32
  bool is_batch_invariant = false;  ///< few fp32 rows give the same digits alone and among others
};

/// Every backend of this test program that this machine can run. One at a time: making the next one changes how the
/// last one runs.
const std::vector<Backend>& backends();

}  // namespace treble::testing
