#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace treble {

/// What `treble quantize` makes.
enum class QuantizeFormat {
  kInt8Convrot,  ///< rotated, one scale a row: Comfy's layout
  kInt8,         ///< the same without rotation, a baseline
  kNf4,          ///< bitsandbytes, double quantisation
};

/// "int8-convrot", "int8", "nf4".
std::string_view to_string(QuantizeFormat format);

/// Whether published releases of that format quantise the module: INT8 the large projections of the text model, NF4
/// every Linear but lm_head, those of the vision tower included.
/// @param module  canonical name (checkpoint.h): "text.layers.0.mlp.up_proj"
bool is_converted(QuantizeFormat format, std::string_view module);

/// Whether a pattern with *, ? and [...] stands for the whole of a name.
bool matches_pattern(const std::string& pattern, const std::string& name);

}  // namespace treble
