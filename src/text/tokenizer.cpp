#include "text/tokenizer.h"

#include <simdjson.h>
#include <treble/error.h>
#include <utf8proc.h>

#include <algorithm>
#include <string>
#include <utility>

#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/nfc.h"
#include "text/pretokenizer.h"
#include "text/tokenizer_file.h"

namespace treble {
namespace {

SplitPattern choose_pattern(const TokenizerFiles& files, PretokenizerChoice choice) {
  switch (choice) {
    case PretokenizerChoice::kFile:
      return files.written_pattern;
    case PretokenizerChoice::kMarks:
      return SplitPattern::kMarks;
    case PretokenizerChoice::kPlain:
      return SplitPattern::kPlain;
    case PretokenizerChoice::kAuto:
      break;
  }
  return files.obeys_written_pattern ? files.written_pattern : SplitPattern::kMarks;
}

std::int32_t end_id(const TokenizerFiles& files) {
  std::int32_t end = files.vocabulary.end_id();
  for (const AddedToken& token : files.added_tokens) end = std::max(end, token.id + 1);
  return end;
}

void require_utf8(std::string_view text) {
  if (simdjson::validate_utf8(text.data(), text.size())) return;
  std::size_t at = 0;
  while (at < text.size()) {
    utf8proc_int32_t code_point = 0;
    const auto num_bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                                            static_cast<utf8proc_ssize_t>(text.size() - at), &code_point);
    if (num_bytes <= 0) break;
    at += static_cast<std::size_t>(num_bytes);
  }
  throw Error(ErrorCode::kRequest, "text: byte " + std::to_string(at) + " is not valid UTF-8; send UTF-8");
}

}  // namespace

struct Tokenizer::Tables {
  Tables(TokenizerFiles files, PretokenizerChoice choice)
      : vocab_size(end_id(files)),
        pretokenizer(choose_pattern(files, choice)),
        added_tokens(std::move(files.added_tokens)),
        vocabulary(std::move(files.vocabulary)),
        merges(std::move(files.merges)),
        bpe(vocabulary, merges) {}

  std::int32_t vocab_size;
  Pretokenizer pretokenizer;
  AddedTokens added_tokens;
  Vocabulary vocabulary;
  MergeTable merges;
  Bpe bpe;  // refers to the two above
};

Tokenizer::Tokenizer(const std::filesystem::path& folder, PretokenizerChoice choice)
    : tables_(std::make_unique<const Tables>(read_tokenizer_files(folder), choice)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> ids;
  encode(text, ids);
  return ids;
}

void Tokenizer::encode(std::string_view text, std::vector<std::int32_t>& ids) const {
  require_utf8(text);
  std::string normalised;
  for (std::size_t begin = 0; begin < text.size();) {
    const AddedTokens::Match match = tables_->added_tokens.find(text, begin);
    const std::string_view segment = to_nfc(text.substr(begin, match.begin - begin), normalised);
    for (std::size_t at = 0; at < segment.size();) {
      const std::size_t end = tables_->pretokenizer.piece_end(segment, at);
      tables_->bpe.encode(segment.substr(at, end - at), ids);
      at = end;
    }
    begin = match.begin;
    if (match.token) {
      ids.push_back(match.token->id);
      begin += match.token->content.size();
    }
  }
}

std::string Tokenizer::decode(const std::vector<std::int32_t>& ids) const {
  std::string text;
  for (const std::int32_t id : ids) {
    if (const AddedToken* token = tables_->added_tokens.with_id(id)) {
      text += token->content;
    } else {
      text += tables_->vocabulary.bytes(id);
    }
  }
  return text;
}

std::int32_t Tokenizer::added_token(std::string_view content) const {
  const AddedToken* token = tables_->added_tokens.with_content(content);
  return token ? token->id : -1;
}

std::int32_t Tokenizer::vocab_size() const {
  return tables_->vocab_size;
}

void check_vocabulary(const Tokenizer& tokenizer, const std::filesystem::path& folder, std::int64_t num_rows) {
  if (tokenizer.vocab_size() <= num_rows) return;
  throw Error(ErrorCode::kCheckpoint, "checkpoint: " + (folder / "tokenizer.json").string() + " has ids up to " +
                                          std::to_string(tokenizer.vocab_size() - 1) +
                                          ", config.json's vocab_size is " + std::to_string(num_rows) +
                                          "; do they belong together?");
}

}  // namespace treble
