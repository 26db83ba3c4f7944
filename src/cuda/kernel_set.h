#pragma once

namespace treble::cuda {

/// Which kernels may be chosen.
enum class KernelSet {
  kBest,   ///< the best for the device
  kSm80,   ///< those that every supported device runs
  kPlain,  ///< those without tensor cores that take any size: to compare the others with
};

/// Whether kernels of Hopper's own instructions may be chosen. Their code, for 9.0a, runs on no other device.
/// @param compute_capability  10 times the major number, plus the minor one
constexpr bool has_wgmma(int compute_capability, KernelSet kernels) {
  return compute_capability == 90 && kernels == KernelSet::kBest;
}

}  // namespace treble::cuda
