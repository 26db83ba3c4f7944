#pragma once

#include <span>
#include <vector>

namespace treble {

/// How two runs of the same records differ.
struct Agreement {
  int decisions = 0;          ///< questions
  int differing = 0;          ///< of them, those whose most likely option is another
  double max_difference = 0;  ///< of the probability of any option
};

/// Adds one record: [question][option] logits of both runs.
void add_record(Agreement& agreement, std::span<const std::vector<float>> a, std::span<const std::vector<float>> b);

}  // namespace treble
