#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <memory>
#include <type_traits>

#include "cuda/status.h"

// Handles of the CUDA runtime and of cuBLASLt that give themselves back.

namespace treble::cuda {

struct DestroyStream {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};
struct DestroyEvent {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
struct DestroyCublasLt {
  void operator()(cublasLtHandle_t handle) const { cublasLtDestroy(handle); }
};
struct DestroyMatmulDesc {
  void operator()(cublasLtMatmulDesc_t desc) const { cublasLtMatmulDescDestroy(desc); }
};
struct DestroyLayout {
  void operator()(cublasLtMatrixLayout_t layout) const { cublasLtMatrixLayoutDestroy(layout); }
};
struct DestroyPreference {
  void operator()(cublasLtMatmulPreference_t preference) const { cublasLtMatmulPreferenceDestroy(preference); }
};
struct FreePinned {
  void operator()(void* memory) const { cudaFreeHost(memory); }
};

template <typename Handle, typename Destroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy>;

using Stream = Owned<cudaStream_t, DestroyStream>;
using Event = Owned<cudaEvent_t, DestroyEvent>;
using CublasLtHandle = Owned<cublasLtHandle_t, DestroyCublasLt>;
using MatmulDesc = Owned<cublasLtMatmulDesc_t, DestroyMatmulDesc>;
using MatrixLayout = Owned<cublasLtMatrixLayout_t, DestroyLayout>;
using MatmulPreference = Owned<cublasLtMatmulPreference_t, DestroyPreference>;
using PinnedMemory = std::unique_ptr<void, FreePinned>;

inline Stream make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
  return Stream(stream);
}

/// For order only; it measures no time.
inline Event make_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event");
  return Event(event);
}

/// Host memory that the device reads and writes directly, under the same address. It cannot be swapped out.
/// @throws Error kDevice when the host has not enough, or does not let a process pin so much
PinnedMemory make_pinned(std::size_t num_bytes);

}  // namespace treble::cuda
