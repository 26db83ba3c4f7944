#pragma once

#include <treble/pretokenizer.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace treble {

/// Byte-level BPE: text -> token ids. Immutable once loaded; any number of threads may call it.
class Tokenizer {
 public:
  /// Reads tokenizer.json and tokenizer_config.json of a release folder.
  /// @throws Error kCheckpoint naming the file and the feature that is not understood
  explicit Tokenizer(const std::filesystem::path& folder, PretokenizerChoice choice = PretokenizerChoice::kAuto);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  /// Nothing is added before or after; added tokens written in the text become their ids.
  /// Time is linear in the text's length, up to a logarithm inside one long piece.
  /// @param text  valid UTF-8 @throws Error kRequest if it is not
  std::vector<std::int32_t> encode(std::string_view text) const;
  /// Appends to ids instead.
  void encode(std::string_view text, std::vector<std::int32_t>& ids) const;

  /// The bytes of the ids, for reports. Unknown ids are left out.
  std::string decode(const std::vector<std::int32_t>& ids) const;

  /// The id of an added token, or -1.
  std::int32_t added_token(std::string_view content) const;

  /// One more than the largest id.
  std::int32_t vocab_size() const;

 private:
  struct Tables;
  std::unique_ptr<const Tables> tables_;
};

/// Every id that a tokenizer may give needs its row of the embedding.
/// @param folder    that the tokenizer was read from
/// @param num_rows  vocab_size of config.json
/// @throws Error kCheckpoint if there are fewer rows
void check_vocabulary(const Tokenizer& tokenizer, const std::filesystem::path& folder, std::int64_t num_rows);

}  // namespace treble
