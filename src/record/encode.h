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
/// @param media  the request's images, then its videos, as MediaReader::read gives them
/// @throws Error kTooLong with the prompt's tokens and the limit; kRequest if an instruction or option has no token, if
/// `media` are not as many as the request has, or if the tokenizer has no tokens for media
EncodedRecord encode_record(const Request& request, const Tokenizer& tokenizer, const EncodeOptions& options = {},
                            MediaItems media = {});

}  // namespace treble
