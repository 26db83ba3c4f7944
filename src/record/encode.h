#pragma once

#include <treble/record.h>

#include <cstdint>

#include "text/tokenizer.h"

namespace treble {

struct EncodeOptions {
  std::int64_t max_tokens = 65536;
  bool truncate_state = false;  ///< cut the end of the state instead of refusing a long prompt
};

/// Request -> token ids and spans (docs/model.md, "Prompt"). Every piece is tokenised on its own.
/// @throws Error kTooLong with the prompt's tokens and the limit; kRequest if the request has images or videos, which
/// are not read here, or if an instruction or option has no token
EncodedRecord encode_record(const Request& request, const Tokenizer& tokenizer, const EncodeOptions& options = {});

}  // namespace treble
