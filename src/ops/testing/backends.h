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
};

/// Every backend that this machine can run. One at a time: making the next one changes how the last one runs.
const std::vector<Backend>& backends();

}  // namespace treble::testing
