#include <cuda.h>
#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>

// The calls of the CUDA runtime and driver that src/cuda makes, for a device that is the host itself: everything is
// done when a call returns.

namespace {

constexpr std::size_t kDeviceBytes = std::size_t{16} << 30;
constexpr std::align_val_t kAlignment{256};

CUresult reserve(CUdeviceptr* base, std::size_t num_bytes, std::size_t, CUdeviceptr, unsigned long long) {
  void* memory = mmap(nullptr, num_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  *base = reinterpret_cast<CUdeviceptr>(memory);
  return memory == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}
CUresult free_addresses(CUdeviceptr base, std::size_t num_bytes) {
  munmap(reinterpret_cast<void*>(base), num_bytes);
  return CUDA_SUCCESS;
}
CUresult create(CUmemGenericAllocationHandle* handle, std::size_t, const CUmemAllocationProp*, unsigned long long) {
  *handle = 1;
  return CUDA_SUCCESS;
}
CUresult release(CUmemGenericAllocationHandle) {
  return CUDA_SUCCESS;
}
CUresult map(CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle, unsigned long long) {
  return CUDA_SUCCESS;
}
CUresult unmap(CUdeviceptr, std::size_t) {
  return CUDA_SUCCESS;
}
CUresult set_access(CUdeviceptr base, std::size_t num_bytes, const CUmemAccessDesc*, std::size_t) {
  mprotect(reinterpret_cast<void*>(base), num_bytes, PROT_READ | PROT_WRITE);
  return CUDA_SUCCESS;
}
CUresult granularity(std::size_t* num_bytes, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) {
  *num_bytes = std::size_t{2} << 20;
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** entry, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  const auto is = [&](const char* other) { return std::strcmp(name, other) == 0; };
  *entry = is("cuMemAddressReserve")             ? reinterpret_cast<void*>(reserve)
           : is("cuMemAddressFree")              ? reinterpret_cast<void*>(free_addresses)
           : is("cuMemCreate")                   ? reinterpret_cast<void*>(create)
           : is("cuMemRelease")                  ? reinterpret_cast<void*>(release)
           : is("cuMemMap")                      ? reinterpret_cast<void*>(map)
           : is("cuMemUnmap")                    ? reinterpret_cast<void*>(unmap)
           : is("cuMemSetAccess")                ? reinterpret_cast<void*>(set_access)
           : is("cuMemGetAllocationGranularity") ? reinterpret_cast<void*>(granularity)
                                                 : nullptr;
  *result = *entry ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::strcpy(properties->name, "emulator");
  properties->major = 8;
  properties->minor = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrComputeCapabilityMajor   ? 8
           : attribute == cudaDevAttrComputeCapabilityMinor ? 0
           : attribute == cudaDevAttrMultiProcessorCount    ? 108
                                                            : 163 << 10;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char*, int, int) {
  return cudaErrorInvalidDevice;  // nothing that NVML knows
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) {
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t) {
  return "an error of the emulator";
}
cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  *free_bytes = *total_bytes = kDeviceBytes;
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** memory, std::size_t num_bytes) {
  *memory = ::operator new(num_bytes, kAlignment);
  std::memset(*memory, 0xff, num_bytes);  // not a number in every type
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  ::operator delete(memory, kAlignment);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** memory, std::size_t num_bytes, unsigned) {
  return cudaMalloc(memory, num_bytes);
}
cudaError_t cudaFreeHost(void* memory) {
  return cudaFree(memory);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t num_bytes, cudaMemcpyKind, cudaStream_t) {
  std::memcpy(to, from, num_bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t num_bytes, cudaStream_t) {
  std::memset(memory, value, num_bytes);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = nullptr;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = nullptr;
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, 0);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 0;  // nothing here takes a device's time
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) {
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) {
  return cudaSuccess;
}

}  // extern "C"
