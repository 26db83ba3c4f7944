#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor_view.h"

namespace treble {

/// A tensor's name as a module and its part in it: "text.layers.0.mlp.up_proj" and "weight_scale".
/// A tensor that is a module by itself, like "text.layers.0.linear_attn.A_log", has an empty part.
struct ModulePart {
  std::string_view module, part;
};
ModulePart split_module(std::string_view tensor_name);

/// The tensors of one module by part.
using ModuleParts = std::map<std::string, TensorView, std::less<>>;

/// How a module's weight is stored.
struct StorageFormat {
  std::string name;  ///< "bf16", "f32", "int8-convrot", "int8", "nf4", "fp8", "int4-gptq", ...
  bool is_quantized = false;
  std::vector<std::int64_t> shape;  ///< of the weight, unpacked; empty for a scalar or when it cannot be told
  std::string problem;              ///< what is wrong with the parts, or empty
  std::string reason;               ///< what decided it: "weight is [256, 256] i8, comfy_quant says {...}"
};

/// Decided by the parts and their bytes alone; a module's name and the folder say nothing.
StorageFormat recognise_format(const ModuleParts& parts);

}  // namespace treble
