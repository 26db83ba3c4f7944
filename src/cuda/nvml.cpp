#include "cuda/nvml.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <vector>

namespace treble::cuda {
namespace {

// As nvml.h declares them, which comes with the driver's development files.
constexpr int kSuccess = 0, kInsufficientSize = 7;  // nvmlReturn_t

struct MemoryInfo {  // nvmlMemory_t
  unsigned long long total, free, used;
};

struct ProcessInfo {  // nvmlProcessInfo_t, of nvmlDeviceGetComputeRunningProcesses_v3
  unsigned pid;
  unsigned long long used_bytes;  // all ones: not available
  unsigned gpu_instance, compute_instance;
};

}  // namespace

struct Nvml::Library {
  void* handle = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*find_device)(const char*, void**) = nullptr;
  int (*memory)(void*, MemoryInfo*) = nullptr;
  int (*processes)(void*, unsigned*, ProcessInfo*) = nullptr;

  template <typename Function>
  bool find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(handle, name));
    return function != nullptr;
  }

  bool open() {
    handle = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    return handle && find("nvmlInit_v2", init) && find("nvmlShutdown", shutdown) &&
           find("nvmlDeviceGetHandleByPciBusId_v2", find_device) && find("nvmlDeviceGetMemoryInfo", memory) &&
           find("nvmlDeviceGetComputeRunningProcesses_v3", processes) && init() == kSuccess;
  }
};

Nvml::Nvml(int device) {
  // Which of NVML's devices is the runtime's, whose order and choice a user may have changed.
  std::array<char, 32> bus_id{};
  if (cudaDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), device) != cudaSuccess) {
    cudaGetLastError();
    return;
  }
  library_ = new Library;
  if (!library_->open()) {
    if (library_->handle) ::dlclose(library_->handle);
    delete library_;
    library_ = nullptr;
    return;
  }
  if (library_->find_device(bus_id.data(), &device_) != kSuccess) device_ = nullptr;
}

Nvml::~Nvml() {
  if (!library_) return;
  library_->shutdown();
  ::dlclose(library_->handle);
  delete library_;
}

std::optional<std::size_t> Nvml::used_bytes() const {
  MemoryInfo info{};
  if (!device_ || library_->memory(device_, &info) != kSuccess) return std::nullopt;
  return info.used;
}

std::optional<std::size_t> Nvml::process_bytes() const {
  if (!device_) return std::nullopt;
  std::vector<ProcessInfo> processes(64);
  auto count = static_cast<unsigned>(processes.size());
  int status = library_->processes(device_, &count, processes.data());
  if (status == kInsufficientSize) {
    processes.resize(count + 64);  // more may come meanwhile
    count = static_cast<unsigned>(processes.size());
    status = library_->processes(device_, &count, processes.data());
  }
  if (status != kSuccess) return std::nullopt;
  const auto own = static_cast<unsigned>(::getpid());
  for (unsigned i = 0; i < count; ++i)
    if (processes[i].pid == own && processes[i].used_bytes != ~0ull) return processes[i].used_bytes;
  return std::nullopt;
}

}  // namespace treble::cuda
