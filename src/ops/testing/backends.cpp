#include "ops/testing/backends.h"

#include "cpu/simd_targets.h"

#include <fmt/format.h>
#include <hwy/highway.h>

#include "cpu/cpu_ops.h"

namespace treble::testing {
namespace {

/// The CPU's operations held to one of the instruction sets that they are built for.
Backend cpu_backend(std::int64_t instruction_set, DType activation_dtype, cpu::Int8Blocks int8_blocks) {
  return {fmt::format("cpu {} {}, int8 products: {}", hwy::TargetName(instruction_set), to_string(activation_dtype),
                      to_string(int8_blocks)),
          [=] {
            hwy::SetSupportedTargetsForTest(instruction_set);
            hwy::GetChosenTarget().Update(hwy::SupportedTargets());
            return std::make_unique<cpu::CpuOps>(activation_dtype, Int8Activations::kPrecise, int8_blocks);
          }};
}

}  // namespace

const std::vector<Backend>& backends() {
  static const std::vector<Backend> all = [] {
    std::vector<Backend> list;
    const std::int64_t present = hwy::SupportedTargets() & HWY_TARGETS;
    for (std::int64_t rest = present; rest != 0; rest &= rest - 1) {
      for (const DType dtype : {DType::kF32, DType::kBF16})
        list.push_back(cpu_backend(rest & -rest, dtype, cpu::Int8Blocks::kNone));
    }
    // The best instruction set once more, with every way of multiplying 8-bit codes that this processor has.
    for (const auto blocks : {cpu::Int8Blocks::kPortable, cpu::Int8Blocks::kVnni, cpu::Int8Blocks::kAmx}) {
      if (is_supported(blocks)) list.push_back(cpu_backend(present & -present, DType::kBF16, blocks));
    }
    return list;
  }();
  return all;
}

}  // namespace treble::testing
