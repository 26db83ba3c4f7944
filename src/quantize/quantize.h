#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "quantize/conversion.h"

namespace treble {

struct QuantizeOptions {
  std::filesystem::path release;  ///< bf16, f16 or f32; one file or shards
  std::filesystem::path out;      ///< must not be there, unless is_replaced
  QuantizeFormat format = QuantizeFormat::kInt8Convrot;
  /// Modules that stay as they are: patterns (matches_pattern) of canonical or stored names of modules.
  std::vector<std::string> keep;
  std::int64_t group_size = 0;  ///< of the rotation or of an NF4 block; 0: the format's usual one, 256 or 64
  bool is_replaced = false;     ///< a release at `out` is replaced
  std::uint64_t max_shard_bytes = 5'000'000'000;  ///< of tensors; a larger tensor gets a shard of its own
};

struct QuantizeSummary {
  std::int64_t converted = 0;                       ///< modules
  std::int64_t kept = 0;                            ///< modules that the format converts and a pattern kept
  std::uint64_t bytes_before = 0, bytes_after = 0;  ///< of the backbone's tensors
  std::int64_t shards = 0;
};

/// Source bytes that are done, of all that there are. What it throws stops the run, which then leaves nothing behind.
using QuantizeProgress = std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)>;

/// Makes a quantised release folder from a plain one, tensor by tensor: in memory is what the largest tensor needs.
/// Every other file is copied byte for byte, but that NF4 puts `quantization_config` into config.json; folders whose
/// names begin with a dot are left out. The folder appears under its name when it is complete (output_folder.h).
/// @throws Error kArgument: options make no sense, `out` may not be written; kCheckpoint: the release is damaged,
///         incomplete or quantised already, a module cannot be converted; kDevice: the disk is full or fails
QuantizeSummary quantize_release(const QuantizeOptions& options, const QuantizeProgress& progress = {});

}  // namespace treble
