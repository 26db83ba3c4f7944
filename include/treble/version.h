#pragma once

namespace treble {

/// "0.1.0"
const char* version();

}  // namespace treble
