#include "cuda/cublas_lt.h"

#include <fmt/format.h>
#include <treble/error.h>

#include "cuda/memory_sizes.h"
#include "cuda/status.h"

namespace treble::cuda {
namespace {

constexpr std::size_t kWorkspaceBytes = kProductWorkspaceBytes;
constexpr std::uint32_t kAlignment = 16;  // bytes, of all operands
constexpr std::size_t kMostPlans = 4096;

cudaDataType_t type_of(DType dtype) {
  return dtype == DType::kBF16 ? CUDA_R_16BF : CUDA_R_32F;
}

template <typename Value>
void set(const MatmulDesc& desc, cublasLtMatmulDescAttributes_t attribute, const Value& value) {
  check(cublasLtMatmulDescSetAttribute(desc.get(), attribute, &value, sizeof(value)), "describing a product");
}

template <typename Value>
void set(const MatmulPreference& preference, cublasLtMatmulPreferenceAttributes_t attribute, const Value& value) {
  check(cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof(value)),
        "describing a product");
}

MatrixLayout make_layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns, std::int64_t stride) {
  cublasLtMatrixLayout_t layout = nullptr;
  check(cublasLtMatrixLayoutCreate(&layout, type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns),
                                   stride),
        "describing a matrix");
  return MatrixLayout(layout);
}

}  // namespace

CublasLt::CublasLt(Memory& device_memory, cudaStream_t stream)
    : device_memory_(device_memory), stream_(stream), workspace_(nullptr) {
  cublasLtHandle_t handle = nullptr;
  check(cublasLtCreate(&handle), "starting cuBLASLt");
  handle_.reset(handle);
  workspace_ = device_memory.allocate(kWorkspaceBytes);
}

CublasLt::~CublasLt() {
  device_memory_.free(workspace_, kWorkspaceBytes);
}

CublasLt::Key CublasLt::key_of(const Product& product) {
  return {product.num_tokens, product.out_features, product.in_features,     product.input_stride,
          product.out_stride, product.out_dtype,    product.bias != nullptr, product.adds};
}

/// cuBLASLt's matrices are column-major: a row-major [T, n] is its [n, T]. So out^T = weight input^T.
CublasLt::Plan CublasLt::make_plan(const Product& product) const {
  Plan plan;
  cublasLtMatmulDesc_t desc = nullptr;
  check(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describing a product");
  plan.desc.reset(desc);
  set(plan.desc, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  set(plan.desc, CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
  if (product.bias) {
    set(plan.desc, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(plan.desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(product.out_dtype));
    set(plan.desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, product.bias);
  }
  plan.weight = make_layout(CUDA_R_16BF, product.in_features, product.out_features, product.in_features);
  plan.input = make_layout(CUDA_R_16BF, product.in_features, product.num_tokens, product.input_stride);
  plan.out = make_layout(type_of(product.out_dtype), product.out_features, product.num_tokens, product.out_stride);

  cublasLtMatmulPreference_t made = nullptr;
  check(cublasLtMatmulPreferenceCreate(&made), "describing a product");
  const MatmulPreference preference(made);
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceBytes);
  for (const auto operand : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                             CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set(preference, operand, kAlignment);

  cublasLtMatmulHeuristicResult_t best{};
  int num_found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle_.get(), plan.desc.get(), plan.weight.get(), plan.input.get(),
                                     plan.out.get(), plan.out.get(), preference.get(), 1, &best, &num_found);
  check(status, "choosing an algorithm");
  if (num_found == 0) {
    throw Error(ErrorCode::kDevice,
                fmt::format("cuda: cuBLASLt has no product of [{}, {}] with [{}, {}]; is its version "
                            "older than 12?",
                            product.num_tokens, product.in_features, product.out_features, product.in_features));
  }
  plan.algorithm = best.algo;
  return plan;
}

void CublasLt::multiply(const Product& product) {
  if (plans_.size() >= kMostPlans) plans_.clear();
  const Key key = key_of(product);
  auto found = plans_.find(key);
  if (found == plans_.end()) found = plans_.emplace(key, make_plan(product)).first;
  const Plan& plan = found->second;
  if (product.bias) set(plan.desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, product.bias);
  const float one = 1, kept = product.adds ? 1.0f : 0.0f;
  check(cublasLtMatmul(handle_.get(), plan.desc.get(), &one, product.weight, plan.weight.get(), product.input,
                       plan.input.get(), &kept, product.out, plan.out.get(), product.out, plan.out.get(),
                       &plan.algorithm, workspace_, kWorkspaceBytes, stream_),
        "a matrix product");
}

}  // namespace treble::cuda
