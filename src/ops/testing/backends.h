#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ops/ops.h"

namespace treble::testing {

/// One way to run the operations on this machine.
struct Backend {
  std::string name;  ///< "cpu f32": device and activation dtype
  std::function<std::unique_ptr<Ops>()> make;
};

/// Every backend that this machine can run.
const std::vector<Backend>& backends();

}  // namespace treble::testing
