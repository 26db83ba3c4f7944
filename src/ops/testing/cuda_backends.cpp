#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include "cuda/make_cuda_ops.h"
#include "ops/testing/backends.h"

namespace treble::testing {
namespace {

Backend cuda_backend(DType activation_dtype, cuda::KernelSet kernels) {
  const bool is_plain = kernels == cuda::KernelSet::kPlain, is_bf16 = activation_dtype == DType::kBF16;
  return {.name = fmt::format("cuda {}{}", to_string(activation_dtype), is_plain ? ", plain kernels" : ""),
          .make = [=] { return cuda::make_cuda_ops({.activation_dtype = activation_dtype, .kernels = kernels}); },
          .rounds_nf4_to_bf16 = true,
          .operand_unit = is_bf16 && !is_plain ? std::ldexp(1.0, -9) : 0,
          .is_batch_invariant = true};
}

}  // namespace

const std::vector<Backend>& backends() {
  static const std::vector<Backend> all = [] {
    std::vector<Backend> list;
    if (cuda::num_devices() == 0) {
      std::puts("SKIPPED: there is no GPU here, or no driver for it");
      return list;
    }
    list.push_back(cuda_backend(DType::kF32, cuda::KernelSet::kBest));
    list.push_back(cuda_backend(DType::kBF16, cuda::KernelSet::kBest));
    list.push_back(cuda_backend(DType::kBF16, cuda::KernelSet::kPlain));
    return list;
  }();
  return all;
}

}  // namespace treble::testing
