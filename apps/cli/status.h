#pragma once

#include <treble/error.h>

#include <string_view>

namespace treble::cli {

/// What the program ends with when a command throws an error of this code.
int exit_status(ErrorCode code);

/// The code in an error object: "argument", "request", "too_long", "checkpoint", "device" or "internal".
std::string_view code_name(ErrorCode code);

}  // namespace treble::cli
