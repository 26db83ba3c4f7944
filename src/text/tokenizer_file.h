#pragma once

#include <filesystem>
#include <vector>

#include "text/added_tokens.h"
#include "text/merge_table.h"
#include "text/pretokenizer.h"
#include "text/vocabulary.h"

namespace treble {

/// What a release's tokenizer files say, checked.
struct TokenizerFiles {
  Vocabulary vocabulary;                 ///< has all 256 single bytes
  MergeTable merges;                     ///< ids of the vocabulary
  std::vector<AddedToken> added_tokens;  ///< contents and ids distinct, ids not in the vocabulary
  SplitPattern written_pattern{};        ///< the one in tokenizer.json
  bool obeys_written_pattern = false;    ///< tokenizer_class is one of those that use it
};

/// Reads tokenizer.json and tokenizer_config.json.
/// @throws Error kCheckpoint naming the file and whatever in it is broken or not implemented here
TokenizerFiles read_tokenizer_files(const std::filesystem::path& folder);

}  // namespace treble
