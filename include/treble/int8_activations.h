#pragma once

namespace treble {

/// How an INT8 Linear makes 8-bit codes of its input x, which is rotated first (docs/weights.md). The scale of a row is
/// always s = largest |x| / 127 in fp32; the modes differ in what is rounded to bf16 on the way to a code.
enum class Int8Activations {
  kPrecise,        ///< round(x / s): nothing; the closest to what the weights were made for
  kComfyFused,     ///< round(bf16(bf16(x) / bf16(s))): as Comfy Kitchen's CUDA kernel
  kComfyFallback,  ///< the same, and s is taken from the bf16(x): as Comfy Kitchen's other code
};

}  // namespace treble
