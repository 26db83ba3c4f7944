#pragma once

#include <stdexcept>
#include <string>

namespace treble {

/// Who has to act on an Error. The command line and the server turn it into an exit or a status code.
enum class ErrorCode {
  kArgument,    ///< the caller's options: exit 2
  kRequest,     ///< the request is not valid: exit 3, HTTP 422
  kTooLong,     ///< the request has more tokens than allowed: exit 3, HTTP 413
  kCheckpoint,  ///< the release folder is broken or not supported: exit 4
  kDevice,      ///< out of memory, or no such device: exit 5, HTTP 503
  kInternal,    ///< a mistake of ours: exit 1, HTTP 500
};

/// The only exception the library throws on purpose.
/// Its message reads "area: which object, what it is, what was expected; what to do".
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}

  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace treble
