#pragma once

namespace treble::cuda {

/// Which kernels may be chosen.
enum class KernelSet {
  kBest,   ///< the best for the device
  kSm80,   ///< those that every supported device runs
  kPlain,  ///< those without tensor cores that take any size: to compare the others with
};

}  // namespace treble::cuda
