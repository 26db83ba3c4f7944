#include "cpu/cpu_ops.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <cstring>
#include <string_view>

#include "cpu/onednn_bf16.h"
#include "cpu/simd_targets.h"

// After the choice of targets.
#include <hwy/highway.h>

namespace treble::cpu {
namespace {

/// The best instruction set that the vector code is built for and this processor has.
std::string_view instruction_set() {
  const std::int64_t usable = hwy::SupportedTargets() & HWY_TARGETS;
  switch (usable & -usable) {
    case HWY_AVX3:
      return "AVX-512";
    case HWY_AVX2:
      return "AVX2";
    default:
      return "SSE4";
  }
}

}  // namespace

CpuOps::CpuOps(DType activation_dtype, Int8Activations int8_activations)
    : activation_dtype_(activation_dtype), int8_activations_(int8_activations) {
  if (activation_dtype != DType::kF32 && activation_dtype != DType::kBF16) {
    throw Error(ErrorCode::kArgument,
                fmt::format("cpu: activations in {}, expected f32 or bf16", to_string(activation_dtype)));
  }
  if (activation_dtype == DType::kBF16 && OnednnBf16::is_supported()) onednn_bf16_ = std::make_unique<OnednnBf16>();
}

CpuOps::~CpuOps() = default;

std::string CpuOps::name() const {
  return fmt::format("cpu ({}{})", instruction_set(), onednn_bf16_ ? ", bf16 products" : "");
}

void CpuOps::download(const TensorView& source, void* host) {
  std::memcpy(host, source.data(), source.num_bytes());
}

}  // namespace treble::cpu
