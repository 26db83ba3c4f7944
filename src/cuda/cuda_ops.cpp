#include "cuda/cuda_ops.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>

#include "cuda/check_fits.h"
#include "cuda/cuda_planner.h"
#include "cuda/event_stopwatch.h"
#include "cuda/memory_sizes.h"
#include "cuda/status.h"

namespace treble::cuda {
namespace {

/// Says what is wrong with a device. The first call that needs it, here the last one, makes its context.
/// @return its name and compute capability
std::string open_device(const CudaOptions& options) {
  int count = 0;
  check(cudaGetDeviceCount(&count), "looking for GPUs");
  if (count == 0) check(cudaErrorNoDevice, "looking for GPUs");
  if (options.device < 0 || options.device >= count) {
    throw Error(ErrorCode::kDevice, fmt::format("device: there is no \"cuda:{}\"; this machine has cuda:0 to cuda:{}",
                                                options.device, count - 1));
  }
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, options.device), "reading the GPU's properties");
  constexpr int kOldestMajor = 8;
  if (properties.major < kOldestMajor) {
    throw Error(ErrorCode::kDevice,
                fmt::format("device: cuda:{} is {} of compute capability {}.{}, expected 8.0 or more; use --device cpu",
                            options.device, properties.name, properties.major, properties.minor));
  }
  check(cudaSetDevice(options.device), "opening the GPU");
  check(cudaFree(nullptr), "opening the GPU");
  return fmt::format("cuda:{} ({}, compute capability {}.{})", options.device, properties.name, properties.major,
                     properties.minor);
}

int read_attribute(cudaDeviceAttr attribute, int device) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, attribute, device), "reading the GPU's properties");
  return value;
}

}  // namespace

bool is_built() {
  return true;
}

int num_devices() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  cudaGetLastError();
  return 0;
}

std::unique_ptr<Ops> make_cuda_ops(const CudaOptions& options) {
  return std::make_unique<CudaOps>(options);
}

CudaOps::CudaOps(const CudaOptions& options)
    : options_(options),
      current_(std::in_place, options.device),
      name_(open_device(options)),
      compute_capability_(10 * read_attribute(cudaDevAttrComputeCapabilityMajor, options.device) +
                          read_attribute(cudaDevAttrComputeCapabilityMinor, options.device)),
      num_sms_(read_attribute(cudaDevAttrMultiProcessorCount, options.device)),
      shared_bytes_per_block_(read_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, options.device)),
      memory_(options.device),
      stream_(make_stream()),
      staging_(memory_, stream_.get()),
      scratch_(memory_),
      cublas_lt_(memory_, stream_.get()),
      weights_(options.device),
      weight_upload_(stream_.get()) {
  if (options.activation_dtype != DType::kF32 && options.activation_dtype != DType::kBF16) {
    throw Error(ErrorCode::kArgument,
                fmt::format("cuda: activations in {}, expected f32 or bf16", to_string(options.activation_dtype)));
  }
  current_.reset();
}

CudaOps::~CudaOps() {
  current_.emplace(options_.device);
  // Nothing may read what the members give back. Whoever gets an error here has no more use for it.
  if (cudaStreamSynchronize(stream_.get()) != cudaSuccess) cudaGetLastError();
}

std::shared_ptr<void> CudaOps::bind_thread() {
  auto current = std::make_shared<CurrentDevice>(options_.device);
  check(cudaSetDevice(options_.device), "making the GPU the thread's current one");
  return current;
}

TensorView CudaOps::place_weight(const HostWeight& host) {
  if (!host.view.is_contiguous()) {
    throw Error(ErrorCode::kInternal, fmt::format("cuda: a weight {} is not contiguous", host.view.describe()));
  }
  std::byte* device = weights_.take(host.view.num_bytes());
  weight_upload_.copy(host, device);
  return host.view.at(device);
}

TensorView CudaOps::place_table(const HostWeight& host) {
  if (options_.tables_on_device) return place_weight(host);
  tables_.push_back(make_pinned(host.view.num_bytes()));
  host_table_bytes_ += host.view.num_bytes();
  parallel_read(host, 0, host.view.num_bytes(), tables_.back().get());
  return host.view.at(tables_.back().get());
}

TensorView CudaOps::upload(Workspace& workspace, const TensorView& host) {
  const TensorView flat = workspace.take(host.dtype(), {host.num_elements()});
  staging_.copy(host.data(), host.num_bytes(), flat.data());
  return host.at(flat.data());
}

void CudaOps::download(const TensorView& source, void* host) {
  check(cudaMemcpyAsync(host, source.data(), source.num_bytes(), cudaMemcpyDeviceToHost, stream_.get()),
        "copying results to the host");
  synchronize();
}

std::unique_ptr<Planner> CudaOps::make_planner() const {
  return std::make_unique<CudaPlanner>(options_, compute_capability_);
}

void CudaOps::reserve(const MemoryNeeds& needs) {
  DeviceRoom room = device_room();
  room.free_bytes += scratch_.held_bytes();  // given back before more is taken
  check_fits(needs, room);
  scratch_.reserve(std::max(needs.scratch, scratch_.held_bytes()));
}

DeviceRoom CudaOps::device_room() const {
  DeviceRoom room{.name = name_, .free_bytes = 0, .total_bytes = 0, .limit_bytes = options_.memory_limit};
  check(cudaMemGetInfo(&room.free_bytes, &room.total_bytes), "reading how much memory is free");
  if (room.limit_bytes == 0) return room;
  const std::size_t used = kContextBytes + weights_.allocated_bytes() + memory_.allocated_bytes();
  room.free_bytes = std::min(room.free_bytes, room.limit_bytes - std::min(room.limit_bytes, used));
  return room;
}

std::size_t CudaOps::room() const {
  const std::size_t free_bytes = device_room().free_bytes;
  return free_bytes - std::min(free_bytes, kKernelBytes);
}

void CudaOps::do_fill_zero(const FillZero& args) {
  // The bits of 0 in both types.
  check(cudaMemsetAsync(args.x.data(), 0, args.x.num_bytes(), stream_.get()), "filling with zeros");
}

HeldMemory CudaOps::held_memory() const {
  return {.weights = weights_.allocated_bytes(),
          .host_tables = host_table_bytes_,
          .scratch = scratch_.held_bytes(),
          .other = kProductWorkspaceBytes + 2 * HostStaging::kHalfBytes};
}

void CudaOps::synchronize() {
  check(cudaStreamSynchronize(stream_.get()), "running kernels");
}

std::unique_ptr<Stopwatch> CudaOps::make_stopwatch() {
  return std::make_unique<EventStopwatch>(stream_.get());
}

}  // namespace treble::cuda
