#include "ops/testing/backends.h"

#include "cpu/simd_targets.h"

#include <fmt/format.h>
#include <hwy/highway.h>

#include "cpu/cpu_ops.h"

namespace treble::testing {
namespace {

/// The CPU's operations held to one of the instruction sets that they are built for.
Backend cpu_backend(std::int64_t instruction_set, DType activation_dtype) {
  return {fmt::format("cpu {} {}", hwy::TargetName(instruction_set), to_string(activation_dtype)),
          [instruction_set, activation_dtype] {
            hwy::SetSupportedTargetsForTest(instruction_set);
            hwy::GetChosenTarget().Update(hwy::SupportedTargets());
            return std::make_unique<cpu::CpuOps>(activation_dtype);
          }};
}

}  // namespace

const std::vector<Backend>& backends() {
  static const std::vector<Backend> all = [] {
    std::vector<Backend> list;
    const std::int64_t present = hwy::SupportedTargets() & HWY_TARGETS;
    for (std::int64_t rest = present; rest != 0; rest &= rest - 1) {
      for (const DType dtype : {DType::kF32, DType::kBF16}) list.push_back(cpu_backend(rest & -rest, dtype));
    }
    return list;
  }();
  return all;
}

}  // namespace treble::testing
