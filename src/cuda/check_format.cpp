#include "cuda/check_format.h"

#include <treble/error.h>

namespace treble::cuda {

void check_format(const LinearWeight& weight) {
  if (weight.format != WeightFormat::kNf4) return;
  throw Error(ErrorCode::kDevice,
              "cuda: nf4 weights do not run on GPUs yet, expected bf16, fp8 or int8 ones; use another release, "
              "--weights int8-convrot of a bf16 one, or --device cpu");
}

}  // namespace treble::cuda
