#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace treble {

/// Some writers store projections of one input as one: where the rows of each are.
struct FusedName {
  std::string module;
  int from_end;  ///< 0: the first rows; 1: the last ones; 2: those before the last, of equal number
};

/// @param name  a projection's canonical name; nullopt if no writer fuses it with others
std::optional<FusedName> fused_name(std::string_view name);

}  // namespace treble
