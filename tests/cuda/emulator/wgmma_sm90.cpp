#include <treble/error.h>

#include "cuda/cuda_ops.h"
#include "cuda/linear_int8_wgmma_sm90.h"
#include "cuda/linear_wgmma_sm90.h"

// The emulator is a device of compute capability 8.0: choosing a kernel of Hopper is a mistake.

namespace treble::cuda {

namespace {

[[noreturn]] void fail() {
  throw Error(ErrorCode::kInternal, "emulator: it has no wgmma; a kernel of compute capability 9.0 was chosen");
}

}  // namespace

void CudaOps::attention_wgmma_sm90(const Attention&) {
  fail();
}

void swiglu_wgmma_sm90(const SwigluProduct&, WgmmaTile, int, cudaStream_t) {
  fail();
}

void linear_wgmma_sm90(const PlainProduct&, WgmmaTile, int, cudaStream_t) {
  fail();
}

void swiglu_int8_wgmma_sm90(const Int8SwigluProduct&, WgmmaInt8Tile, int, cudaStream_t) {
  fail();
}

void linear_int8_wgmma_sm90(const Int8Product&, WgmmaInt8Tile, int, cudaStream_t) {
  fail();
}

}  // namespace treble::cuda
