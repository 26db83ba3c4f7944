#pragma once

#include <cstdint>

#include "model/config.h"
#include "ops/planner.h"

namespace treble {

/// What a plain bf16 model takes of the device behind a planner, with passes of up to so many tokens, records and
/// questions in any mixture that split_into_passes() gives. Nothing is loaded or computed.
/// @param has_vision  whether the release has a vision tower
MemoryNeeds plan_memory(const ModelConfig& config, bool has_vision, std::int64_t pass_tokens, Planner& planner);

}  // namespace treble
