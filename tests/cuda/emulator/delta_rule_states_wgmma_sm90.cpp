#include <treble/error.h>

#include "cuda/delta_rule_chunks_sm80.cuh"

// The emulator is a device of compute capability 8.0: choosing a kernel of Hopper is a mistake.

namespace treble::cuda::delta_rule {

void run_chunk_states_wgmma(cudaStream_t, const Operands&, std::int64_t, std::int64_t, int) {
  throw Error(ErrorCode::kInternal, "emulator: it has no wgmma; a kernel of compute capability 9.0 was chosen");
}

}  // namespace treble::cuda::delta_rule
