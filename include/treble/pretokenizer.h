#pragma once

namespace treble {

/// Which of the two pre-tokenizer patterns splits text before tokens are made of it.
enum class PretokenizerChoice {
  kAuto,   ///< tokenizer_class in tokenizer_config.json decides: the generic classes obey the file, others use kMarks
  kFile,   ///< the pattern written in tokenizer.json
  kMarks,  ///< the pattern in which marks belong to words (Qwen3.5's own class)
  kPlain,  ///< the older one, without marks
};

}  // namespace treble
