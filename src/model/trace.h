#pragma once

#include <functional>
#include <string>

#include "tensor/tensor_view.h"

namespace treble {

/// Receives intermediate results by name while a pass runs. Views are valid during the call only.
using Trace = std::function<void(const std::string& name, const TensorView& value)>;

}  // namespace treble
