#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors_writer.h"
#include "quantize/quantize.h"

namespace treble {

/// One tensor of the source and what becomes of it.
struct PlannedConversion {
  const SafetensorsFile::Tensor* source = nullptr;
  std::string module;                  ///< its stored name, without ".weight", if it is converted; else empty
  std::vector<PlannedTensor> tensors;  ///< in the new file
  std::string text;                    ///< the name of a description whose length is not known yet; or empty

  bool is_converted() const { return !module.empty(); }
  std::uint64_t num_bytes() const;
};

struct QuantizePlan {
  std::vector<std::vector<PlannedConversion>> shards;
  std::vector<std::string> kept_modules;  ///< stored names of those that the format converts and a pattern kept
  QuantizeSummary summary;
};

/// The size that the options ask for, or the format's usual one; 1 where rows are not rotated.
std::int64_t group_size_of(const QuantizeOptions& options);

/// Decides for every tensor of a release what becomes of it, from names and shapes alone.
/// @throws Error kArgument, kCheckpoint as quantize_release()
QuantizePlan plan_quantization(const Checkpoint& checkpoint, const QuantizeOptions& options);

}  // namespace treble
