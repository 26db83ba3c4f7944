#include <cublasLt.h>

#include <cstdint>
#include <cstring>

#include "tensor/bfloat16.h"

// The calls of cuBLASLt that src/cuda makes: products of a transposed bf16 matrix with a bf16 matrix, column-major,
// with exact sums.

namespace {

struct Desc {
  cudaDataType_t bias_type = CUDA_R_16BF;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};

struct Layout {
  cudaDataType_t type;
  std::int64_t rows, columns, stride;
};

const Layout& layout_of(cublasLtMatrixLayout_t handle) {
  return *reinterpret_cast<const Layout*>(handle);
}

float bf16_at(const void* data, std::int64_t i) {
  return treble::to_float(static_cast<const treble::bfloat16*>(data)[i]);
}

float element_at(const void* data, cudaDataType_t type, std::int64_t i) {
  return type == CUDA_R_16BF ? bf16_at(data, i) : static_cast<const float*>(data)[i];
}

}  // namespace

extern "C" {

const char* cublasLtGetStatusString(cublasStatus_t) {
  return "an error of the emulator";
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = nullptr;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t, cudaDataType_t) {
  *desc = reinterpret_cast<cublasLtMatmulDesc_t>(new Desc);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete reinterpret_cast<Desc*>(desc);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t num_bytes) {
  Desc& desc = *reinterpret_cast<Desc*>(handle);
  if (attribute == CUBLASLT_MATMUL_DESC_EPILOGUE) std::memcpy(&desc.epilogue, value, num_bytes);
  if (attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER) std::memcpy(&desc.bias, value, num_bytes);
  if (attribute == CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE) std::memcpy(&desc.bias_type, value, num_bytes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t stride) {
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(
      new Layout{type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), stride});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete reinterpret_cast<Layout*>(layout);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = nullptr;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
                                                    const void*, std::size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int, cublasLtMatmulHeuristicResult_t[],
                                              int* num_found) {
  *num_found = 1;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t handle, const void*, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t*, void*, std::size_t,
                              cudaStream_t) {
  const Desc& desc = *reinterpret_cast<const Desc*>(handle);
  const Layout &of_a = layout_of(a_layout), &of_b = layout_of(b_layout), &of_d = layout_of(d_layout);
  float kept = 0;
  std::memcpy(&kept, beta, sizeof(kept));
  for (std::int64_t column = 0; column < of_d.columns; ++column) {
    for (std::int64_t row = 0; row < of_d.rows; ++row) {
      double sum = 0;
      for (std::int64_t k = 0; k < of_a.rows; ++k)
        sum += static_cast<double>(bf16_at(a, row * of_a.stride + k)) *
               static_cast<double>(bf16_at(b, column * of_b.stride + k));
      const std::int64_t at = column * of_d.stride + row;
      // What is added to bf16 is rounded first, as on a GPU.
      if (kept != 0 && of_d.type == CUDA_R_16BF) sum = treble::to_float(treble::to_bfloat16(static_cast<float>(sum)));
      if (kept != 0) sum += static_cast<double>(element_at(c, of_d.type, at));
      if (desc.epilogue == CUBLASLT_EPILOGUE_BIAS)
        sum += static_cast<double>(element_at(desc.bias, desc.bias_type, row));
      const auto narrow = static_cast<float>(sum);
      if (of_d.type == CUDA_R_16BF) {
        static_cast<treble::bfloat16*>(d)[at] = treble::to_bfloat16(narrow);
      } else {
        static_cast<float*>(d)[at] = narrow;
      }
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
