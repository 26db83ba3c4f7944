#include "engine/backend.h"

#include <fmt/format.h>
#include <treble/error.h>

#include "cpu/cpu_ops.h"

namespace treble {

std::unique_ptr<Ops> make_ops(const std::string& device, Precision precision, Int8Activations int8_activations) {
  const DType activations = precision == Precision::kF32 ? DType::kF32 : DType::kBF16;
  if (device == "cpu") return std::make_unique<cpu::CpuOps>(activations, int8_activations);
  throw Error(ErrorCode::kDevice, fmt::format("device: there is no \"{}\"; this build has: cpu", device));
}

}  // namespace treble
