#include "engine/backend.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <charconv>
#include <optional>
#include <string_view>

#include "cpu/cpu_ops.h"
#include "cuda/cuda_planner.h"
#include "cuda/device_meter.h"
#include "cuda/make_cuda_ops.h"
#include "cuda/memory_sizes.h"

namespace treble {
namespace {

/// The ordinal of "cuda" or "cuda:N".
std::optional<int> cuda_ordinal(std::string_view device) {
  constexpr std::string_view kName = "cuda";
  if (!device.starts_with(kName)) return std::nullopt;
  device.remove_prefix(kName.size());
  if (device.empty()) return 0;
  int ordinal = 0;
  const auto [end, error] = std::from_chars(device.data() + 1, device.data() + device.size(), ordinal);
  if (device.front() != ':' || error != std::errc() || end != device.data() + device.size()) return std::nullopt;
  return ordinal;
}

cuda::CudaOptions cuda_options(int ordinal, DType activations, Int8Activations int8_activations,
                               const DeviceOptions& options) {
  return {.device = ordinal,
          .activation_dtype = activations,
          .int8_activations = int8_activations,
          .kernels = options.kernels == Kernels::kBest ? cuda::KernelSet::kBest : cuda::KernelSet::kSm80,
          .tables_on_device = options.embeddings == Embeddings::kDevice,
          .memory_limit = options.memory_limit};
}

}  // namespace

Precision resolve_precision(Precision precision, const std::string& device) {
  if (precision != Precision::kAuto) return precision;
  return device == "cpu" ? Precision::kF32 : Precision::kBf16;
}

std::unique_ptr<Ops> make_ops(const std::string& device, Precision precision, Int8Activations int8_activations,
                              const DeviceOptions& options) {
  const DType activations = resolve_precision(precision, device) == Precision::kF32 ? DType::kF32 : DType::kBF16;
  if (device == "cpu") return std::make_unique<cpu::CpuOps>(activations, int8_activations);
  if (const std::optional<int> ordinal = cuda_ordinal(device))
    return cuda::make_cuda_ops(cuda_options(*ordinal, activations, int8_activations, options));
  throw Error(ErrorCode::kDevice, fmt::format("device: there is no \"{}\"; this build has: cpu{}", device,
                                              cuda::is_built() ? ", cuda, cuda:N" : ""));
}

std::unique_ptr<Planner> make_planner(Precision precision, const DeviceOptions& options) {
  const DType activations = precision == Precision::kF32 ? DType::kF32 : DType::kBF16;
  return std::make_unique<cuda::CudaPlanner>(cuda_options(0, activations, Int8Activations::kPrecise, options));
}

std::size_t room_of_limit(std::uint64_t limit_bytes) {
  return cuda::room_within(limit_bytes);
}

std::unique_ptr<DeviceMeter> make_device_meter(const std::string& device) {
  const std::optional<int> ordinal = cuda_ordinal(device);
  return ordinal ? cuda::make_device_meter(*ordinal) : nullptr;
}

}  // namespace treble
