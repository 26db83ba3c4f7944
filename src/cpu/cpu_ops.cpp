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

CpuOps::CpuOps(DType activation_dtype, Int8Activations int8_activations, Int8Blocks int8_blocks)
    : activation_dtype_(activation_dtype), int8_activations_(int8_activations), int8_blocks_(int8_blocks) {
  if (activation_dtype != DType::kF32 && activation_dtype != DType::kBF16) {
    throw Error(ErrorCode::kArgument,
                fmt::format("cpu: activations in {}, expected f32 or bf16", to_string(activation_dtype)));
  }
  if (activation_dtype == DType::kBF16 && OnednnBf16::is_supported()) onednn_bf16_ = std::make_unique<OnednnBf16>();
}

CpuOps::~CpuOps() = default;

std::string CpuOps::name() const {
  std::string name = fmt::format("cpu ({}", instruction_set());
  if (onednn_bf16_) name += ", bf16 products";
  if (int8_blocks_ != Int8Blocks::kNone) name += fmt::format(", int8 products by {}", to_string(int8_blocks_));
  return name + ")";
}

void CpuOps::download(const TensorView& source, void* host) {
  std::memcpy(host, source.data(), source.num_bytes());
}

void CpuOps::do_fill_zero(const FillZero& args) {
  std::memset(args.x.data(), 0, args.x.num_bytes());  // the bits of 0 in both types
}

}  // namespace treble::cpu
