#pragma once

#include <treble/json.h>

#include <string>

namespace treble {

/// The text that the model reads for a value: a string as it is, anything else as compact JSON
/// with object keys sorted by code point at every depth; of duplicate keys the last stays.
std::string render(const Json& value);

}  // namespace treble
