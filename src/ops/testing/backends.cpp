#include "ops/testing/backends.h"

#include "cpu/cpu_ops.h"

namespace treble::testing {

const std::vector<Backend>& backends() {
  static const std::vector<Backend> all = {
      {"cpu f32", [] { return std::make_unique<cpu::CpuOps>(DType::kF32); }},
      {"cpu bf16", [] { return std::make_unique<cpu::CpuOps>(DType::kBF16); }},
  };
  return all;
}

}  // namespace treble::testing
