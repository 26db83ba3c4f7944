#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace treble::cuda {

/// A tile of a product on Hopper's wgmma, of which two blocks work on neighbours along the weight.
struct FewTokensTile {
  int weight_rows, num_tokens, element_bytes;
};

/// Clock cycles of a multiprocessor for one input feature, by estimate, where all tokens are in one tile; infinity
/// where they are not. The weight comes from device memory once; a multiprocessor takes no more than so much of its
/// tiles from the L2 cache, also while others have nothing left to do.
inline double few_tokens_cost(const FewTokensTile& tile, std::int64_t num_tokens, std::int64_t weight_rows,
                              int num_sms) {
  constexpr double kDeviceBytes = 18;     // a cycle of device memory, for each multiprocessor: 4.2 TB/s of an H200
  constexpr double kBytes = 28;           // a cycle that a multiprocessor gets from the L2 cache
  constexpr double kProductBytes = 4096;  // a cycle of the tensor cores: bytes of one operand times columns
  constexpr double kHidden = 0.875;       // of what is not the limit
  if (num_tokens > tile.num_tokens) return std::numeric_limits<double>::infinity();
  const std::int64_t pair_rows = 2 * tile.weight_rows, clusters = std::max(1, num_sms / 2);
  const std::int64_t pairs = (weight_rows + pair_rows - 1) / pair_rows;
  const auto rounds = static_cast<double>((pairs + clusters - 1) / clusters);
  const double rows = tile.weight_rows, tokens = tile.num_tokens, bytes = tile.element_bytes;
  const double reading = static_cast<double>(weight_rows) * bytes / (kDeviceBytes * std::max(1, num_sms));
  const double copying = rounds * (rows + tokens / 2) * bytes / kBytes;
  // A product of n tokens reads its 64 weight rows for each of them: a tenth more for 128 tokens than for 256.
  const double multiplying = rounds * rows * bytes * (0.9 * tokens + 25.6) / kProductBytes;
  return std::max({reading, copying, multiplying}) + (1 - kHidden) * (copying + multiplying);
}

}  // namespace treble::cuda
