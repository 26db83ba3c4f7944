#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <string_view>

namespace treble::cuda {

/// Does nothing on success. @param what  was tried: "rms_norm"
/// @throws Error kDevice that says what failed and what to do
void check(cudaError_t status, std::string_view what);
void check(cublasStatus_t status, std::string_view what);

}  // namespace treble::cuda
