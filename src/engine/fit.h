#pragma once

#include <treble/engine.h>
#include <treble/json.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace treble {

/// What a GPU, or a share of its memory, has room for: found from the headers of a release, without a GPU. Bytes.
struct FitReport {
  std::uint64_t limit_bytes = 0;
  std::size_t room_bytes = 0;  ///< of them, what is left beside the driver's and the libraries' own
  std::size_t weight_bytes = 0;
  std::size_t tower_bytes = 0;       ///< of the vision tower, if it is loaded when a picture comes
  std::size_t activation_bytes = 0;  ///< of passes
  std::size_t scratch_bytes = 0;     ///< inside operations
  std::size_t tower_pass_bytes = 0;  ///< what passes take more once that tower is there
  std::int64_t pass_tokens = 0;      ///< of the longest pass
  std::int64_t longest_tokens = 0;   ///< of the longest text, in pieces
  bool fits = false;                 ///< what is loaded at once
  bool tower_fits = false;           ///< with that tower too
};

/// @param options  memory_limit, pass_tokens, max_tokens, precision, weights, vision, kernels and embeddings count
/// @throws Error kCheckpoint naming the file; kDevice: GPUs do not run a weight's format; kArgument: no limit is given
FitReport plan_fit(const std::filesystem::path& folder, const EngineOptions& options);

/// A few lines of text, and the same as JSON.
std::string to_text(const FitReport& report);
Json to_json(const FitReport& report);

}  // namespace treble
