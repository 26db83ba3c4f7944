#pragma once

#include <cstdint>

namespace treble::cpu {

/// Some tokens of one sequence, and what is made of them: a few heads of query, key or value, or all gates.
struct DeltaRuleInputsTask {
  enum class Part { kQuery, kKey, kValue, kGates };

  std::int64_t sequence, sequence_begin;
  std::int64_t begin, end;  // tokens
  Part part;
  std::int64_t first_head, num_heads;
};

}  // namespace treble::cpu
