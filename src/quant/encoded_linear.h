#pragma once

#include <memory>
#include <vector>

#include "quant/linear_weight.h"

namespace treble {

/// A Linear that was quantised here, and the memory that its views point to.
struct EncodedLinear {
  LinearWeight linear;  ///< without a bias
  std::vector<std::shared_ptr<const void>> storage;
};

}  // namespace treble
