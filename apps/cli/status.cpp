#include "cli/status.h"

namespace treble::cli {

int exit_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInternal:
      return 1;
    case ErrorCode::kArgument:
      return 2;
    case ErrorCode::kRequest:
      return 3;
    case ErrorCode::kTooLong:
      return 3;
    case ErrorCode::kCheckpoint:
      return 4;
    case ErrorCode::kDevice:
      return 5;
  }
  return 1;
}

std::string_view code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInternal:
      return "internal";
    case ErrorCode::kArgument:
      return "argument";
    case ErrorCode::kRequest:
      return "request";
    case ErrorCode::kTooLong:
      return "too_long";
    case ErrorCode::kCheckpoint:
      return "checkpoint";
    case ErrorCode::kDevice:
      return "device";
  }
  return "internal";
}

}  // namespace treble::cli
