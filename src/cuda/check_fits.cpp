#include "cuda/check_fits.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <string>

#include "cuda/memory_sizes.h"

namespace treble::cuda {
namespace {

std::string text(std::size_t bytes) {
  return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (std::size_t{1} << 30));
}

}  // namespace

void check_fits(const MemoryNeeds& needs, const DeviceRoom& room) {
  const std::size_t passes = needs.activations + needs.scratch, resident = needs.weights + kKernelBytes;
  if (resident + passes <= room.free_bytes) return;

  std::string advice;
  const auto advise = [&](std::string_view what) { advice += fmt::format("{}{}", advice.empty() ? "" : ", ", what); };
  if (resident < room.free_bytes) advise("lower --pass-tokens");
  if (needs.tables > 0) advise("leave the vocabulary tables in host memory (--embeddings host)");
  if (room.limit_bytes > 0)
    advise("raise --memory-limit");
  else if (resident + passes <= room.total_bytes)
    advise("end what else uses the device's memory");
  advise("use a smaller model or another --device");
  throw Error(ErrorCode::kDevice,
              fmt::format("device: {} has {} {} of {}, expected {}: {} of weights, {} of activations and {} of "
                          "scratch for passes of {} tokens, {} for kernels; {}",
                          room.name, text(room.free_bytes), room.limit_bytes > 0 ? "left" : "free",
                          room.limit_bytes > 0 ? fmt::format("--memory-limit {}", text(room.limit_bytes))
                                               : text(room.total_bytes),
                          text(resident + passes), text(needs.weights), text(needs.activations), text(needs.scratch),
                          needs.pass_tokens, text(kKernelBytes), advice));
}

}  // namespace treble::cuda
