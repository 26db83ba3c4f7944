#include "text/tokenizer_file.h"

#include <fmt/format.h>
#include <treble/error.h>
#include <treble/json.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/mapped_file.h"
#include "text/unicode.h"

namespace treble {
namespace {

/// A JSON file whose every complaint names it.
class File {
 public:
  explicit File(std::filesystem::path path)
      : name_("checkpoint: " + path.string()), root_(parse_json(read_text_file(path), name_, ErrorCode::kCheckpoint)) {
    expect(root_, "an object", "the file");
  }

  const Json& root() const { return root_; }

  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorCode::kCheckpoint, fmt::format("{}: {}", name_, what));
  }

  /// The member of that name, of that Json::type_name.
  const Json& member(const Json& object, std::string_view key, std::string_view type, std::string_view path) const {
    const Json* found = object.find(key);
    const std::string what = join(path, key);
    if (!found) refuse(fmt::format("{} is missing; it has to be {}", what, type));
    expect(*found, type, what);
    return *found;
  }

  void expect(const Json& value, std::string_view type, std::string_view what) const {
    if (value.type_name() == type) return;
    refuse(fmt::format("{} is {}, expected {}", what, value.type_name(), type));
  }

  /// Refuses a feature that this tokenizer does not have: object[key] has to be one of the values. Absent counts as
  /// null.
  void require(const Json& object, std::string_view key, std::initializer_list<Json> values,
               std::string_view path) const {
    const Json* found = object.find(key);
    const Json value = found ? *found : Json();
    if (std::find(values.begin(), values.end(), value) != values.end()) return;
    std::string allowed;
    for (const Json& each : values) allowed += (allowed.empty() ? "" : " or ") + dump_json(each);
    refuse(fmt::format("{} is {:.200}, only {} is implemented", join(path, key), dump_json(value), allowed));
  }

  /// Refuses members whose meaning is not known here.
  void require_known(const Json& object, std::initializer_list<std::string_view> known, std::string_view path) const {
    for (const auto& [key, value] : object.as_object()) {
      if (std::find(known.begin(), known.end(), key) == known.end())
        refuse(fmt::format("{} is not implemented", join(path, key)));
    }
  }

  static std::string join(std::string_view path, std::string_view key) {
    return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
  }

 private:
  std::string name_;
  Json root_;
};

/// How vocabularies write bytes: printable Latin-1 as itself, the other 68 bytes in order as U+0100 to U+0143.
class ByteAlphabet {
 public:
  ByteAlphabet() {
    bytes_.fill(-1);
    char32_t next = 0x100;
    for (std::int16_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
      bytes_[printable ? static_cast<char32_t>(byte) : next++] = byte;
    }
  }

  /// @return false if the text has another character
  bool to_bytes(std::string_view text, std::string& bytes) const {
    bytes.clear();
    for (std::size_t i = 0; i < text.size();) {
      const Character c = character_at(text, i);
      if (c.code_point >= bytes_.size() || bytes_[c.code_point] < 0) return false;
      bytes.push_back(static_cast<char>(bytes_[c.code_point]));
      i += c.num_bytes;
    }
    return true;
  }

 private:
  std::array<std::int16_t, 0x144> bytes_;
};

/// @param what  returns the name of what has the id
std::int32_t read_id(const File& file, const Json& value, const auto& what) {
  long long id = -1;
  if (!value.is_number() || !value.as_int64(id) || id < 0 || id > Vocabulary::kMaxId) {
    file.refuse(fmt::format("{} has the id {:.100}, expected an integer from 0 to {}", what(), dump_json(value),
                            Vocabulary::kMaxId));
  }
  return static_cast<std::int32_t>(id);
}

Vocabulary read_vocabulary(const File& file, const Json& model, const ByteAlphabet& alphabet) {
  const Json::Object& entries = file.member(model, "vocab", "an object", "model").as_object();
  Vocabulary vocabulary(entries.size());
  std::string bytes;
  for (const auto& [key, value] : entries) {
    const auto what = [&key = key] { return fmt::format("model.vocab: \"{:.100}\"", key); };
    const std::int32_t id = read_id(file, value, what);
    if (key.empty() || !alphabet.to_bytes(key, bytes))
      file.refuse(fmt::format("{} is not written in the byte-level alphabet", what()));
    if (!vocabulary.add(bytes, id)) file.refuse(fmt::format("{} (id {}) repeats a token or an id", what(), id));
  }
  for (int byte = 0; byte < 256; ++byte) {
    const auto c = static_cast<char>(byte);
    if (vocabulary.find({&c, 1}) < 0) {
      file.refuse(fmt::format("model.vocab has no token for the byte {}; all 256 are needed", byte));
    }
  }
  return vocabulary;
}

/// Both sides of ["left", "right"] or of the older "left right".
std::pair<std::string_view, std::string_view> merge_sides(const File& file, const Json& merge, std::size_t rank) {
  if (merge.is_array()) {
    const Json::Array& sides = merge.as_array();
    if (sides.size() == 2 && sides[0].is_string() && sides[1].is_string()) {
      return {sides[0].as_string(), sides[1].as_string()};
    }
  } else if (merge.is_string()) {
    const std::string_view text = merge.as_string();
    const std::size_t blank = text.find(' ');
    if (blank != text.npos && text.find(' ', blank + 1) == text.npos)
      return {text.substr(0, blank), text.substr(blank + 1)};
  }
  file.refuse(fmt::format(R"(model.merges[{}] is no merge, expected ["left", "right"] or "left right")", rank));
}

MergeTable read_merges(const File& file, const Json& model, const ByteAlphabet& alphabet,
                       const Vocabulary& vocabulary) {
  const Json::Array& list = file.member(model, "merges", "an array", "model").as_array();
  MergeTable merges(list.size());
  std::string bytes;
  std::string joined;
  std::int32_t merged_id = -1;
  for (const Json& entry : list) {
    const std::uint32_t rank = merges.size();
    const auto [left, right] = merge_sides(file, entry, rank);
    const auto id_of = [&](std::string_view side) {
      const std::int32_t id = alphabet.to_bytes(side, bytes) ? vocabulary.find(bytes) : -1;
      if (id < 0)
        file.refuse(fmt::format("model.merges[{}] names \"{:.100}\", which model.vocab does not have", rank, side));
      joined += bytes;
      return id;
    };
    joined.clear();
    const std::int32_t left_id = id_of(left);
    const std::int32_t right_id = id_of(right);
    // Most merges make the tokens in the order of their ids: a look at the next one spares most searches.
    merged_id = vocabulary.bytes(merged_id + 1) == joined ? merged_id + 1 : vocabulary.find(joined);
    if (merged_id < 0) {
      file.refuse(
          fmt::format("model.merges[{}] makes \"{:.100}{:.100}\", which model.vocab does not have", rank, left, right));
    }
    if (!merges.add(left_id, right_id, merged_id)) {
      file.refuse(fmt::format("model.merges[{}] repeats an earlier merge", rank));
    }
  }
  return merges;
}

void check_model(const File& file, const Json& model) {
  file.require(model, "type", {"BPE"}, "model");
  // unk_token and fuse_unk mean nothing where every byte is a token.
  file.require_known(model,
                     {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                      "byte_fallback", "ignore_merges", "vocab", "merges"},
                     "model");
  file.require(model, "dropout", {nullptr}, "model");
  file.require(model, "continuing_subword_prefix", {nullptr, ""}, "model");
  file.require(model, "end_of_word_suffix", {nullptr, ""}, "model");
  file.require(model, "byte_fallback", {nullptr, false}, "model");
  file.require(model, "ignore_merges", {nullptr, false}, "model");
}

void check_normalizer(const File& file) {
  const Json* normalizer = &file.member(file.root(), "normalizer", "an object", "");
  if (const Json* list = normalizer->find("normalizers")) {
    file.require(*normalizer, "type", {"Sequence"}, "normalizer");
    if (!list->is_array() || list->as_array().size() != 1)
      file.refuse("normalizer is a sequence, only one of NFC alone is implemented");
    normalizer = &list->as_array()[0];
  }
  file.expect(*normalizer, "an object", "normalizer");
  file.require(*normalizer, "type", {"NFC"}, "normalizer");
}

SplitPattern read_split_pattern(const File& file) {
  const Json& pre_tokenizer = file.member(file.root(), "pre_tokenizer", "an object", "");
  file.require(pre_tokenizer, "type", {"Sequence"}, "pre_tokenizer");
  file.require_known(pre_tokenizer, {"type", "pretokenizers"}, "pre_tokenizer");
  const Json::Array& steps = file.member(pre_tokenizer, "pretokenizers", "an array", "pre_tokenizer").as_array();
  if (steps.size() != 2) {
    file.refuse(fmt::format("pre_tokenizer has {} steps, expected Split, then ByteLevel", steps.size()));
  }

  const std::string_view split_path = "pre_tokenizer.pretokenizers[0]";
  const Json& split = steps[0];
  file.expect(split, "an object", split_path);
  file.require(split, "type", {"Split"}, split_path);
  file.require_known(split, {"type", "pattern", "behavior", "invert"}, split_path);
  file.require(split, "behavior", {"Isolated"}, split_path);
  file.require(split, "invert", {false}, split_path);

  const std::string_view byte_path = "pre_tokenizer.pretokenizers[1]";
  const Json& byte_level = steps[1];
  file.expect(byte_level, "an object", byte_path);
  file.require(byte_level, "type", {"ByteLevel"}, byte_path);
  file.require_known(byte_level, {"type", "add_prefix_space", "trim_offsets", "use_regex"}, byte_path);
  file.require(byte_level, "add_prefix_space", {false}, byte_path);
  file.require(byte_level, "use_regex", {false}, byte_path);

  const Json& pattern = file.member(split, "pattern", "an object", split_path);
  const std::string& regex = file.member(pattern, "Regex", "a string", File::join(split_path, "pattern")).as_string();
  if (const auto known = parse_split_pattern(regex)) return *known;
  file.refuse(fmt::format("the split pattern {:.400} is not one of the two that are implemented", regex));
}

/// Encoding adds nothing to a text's own tokens, so a post-processor that would is refused.
void check_post_processor(const File& file) {
  const Json* processor = file.root().find("post_processor");
  if (!processor || processor->is_null()) return;
  file.expect(*processor, "an object", "post_processor");
  file.require(*processor, "type", {"ByteLevel", "TemplateProcessing"}, "post_processor");
  if (const Json* single = processor->find("single")) {
    const bool only_text =
        single->is_array() && single->as_array().size() == 1 && single->as_array()[0].find("Sequence");
    if (!only_text) file.refuse("post_processor.single adds tokens, only the sequence itself is implemented");
  }
}

AddedToken read_added_token(const File& file, const Json& token, std::int32_t id, const std::string& path) {
  for (const char* flag : {"single_word", "lstrip", "rstrip", "normalized"}) file.require(token, flag, {false}, path);
  const std::string& content = file.member(token, "content", "a string", path).as_string();
  if (content.empty()) file.refuse(fmt::format("{}.content is empty", path));
  return {content, id};
}

/// Adds a token, unless it is there already with the same id.
void add_token(const File& file, const Vocabulary& vocabulary, const AddedToken& token,
               std::vector<AddedToken>& tokens) {
  for (const AddedToken& other : tokens) {
    if (other.content == token.content && other.id == token.id) return;
    if (other.content == token.content || other.id == token.id) {
      file.refuse(fmt::format("the added token \"{:.100}\" has the id {}, but \"{:.100}\" has {}", token.content,
                              token.id, other.content, other.id));
    }
  }
  if (!vocabulary.bytes(token.id).empty()) {
    file.refuse(
        fmt::format("the added token \"{:.100}\" has the id {}, which model.vocab uses", token.content, token.id));
  }
  tokens.push_back(token);
}

}  // namespace

TokenizerFiles read_tokenizer_files(const std::filesystem::path& folder) {
  TokenizerFiles files;
  const File file(folder / "tokenizer.json");
  file.require(file.root(), "version", {"1.0"}, "");
  check_normalizer(file);
  check_post_processor(file);
  files.written_pattern = read_split_pattern(file);
  const Json& model = file.member(file.root(), "model", "an object", "");
  check_model(file, model);
  const ByteAlphabet alphabet;
  files.vocabulary = read_vocabulary(file, model, alphabet);
  files.merges = read_merges(file, model, alphabet, files.vocabulary);

  const Json::Array& tokens = file.member(file.root(), "added_tokens", "an array", "").as_array();
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string path = fmt::format("added_tokens[{}]", i);
    file.expect(tokens[i], "an object", path);
    const std::int32_t id = read_id(file, file.member(tokens[i], "id", "a number", path), [&] { return path; });
    add_token(file, files.vocabulary, read_added_token(file, tokens[i], id, path), files.added_tokens);
  }

  const File config(folder / "tokenizer_config.json");
  // A release may list further tokens only here.
  if (const Json* decoder = config.root().find("added_tokens_decoder"); decoder && !decoder->is_null()) {
    config.expect(*decoder, "an object", "added_tokens_decoder");
    for (const auto& [key, token] : decoder->as_object()) {
      const std::string path = fmt::format("added_tokens_decoder.{}", key);
      config.expect(token, "an object", path);
      const bool digits = !key.empty() && key.find_first_not_of("0123456789") == key.npos;
      const std::int32_t id = read_id(config, digits ? Json(Json::Number{key}) : Json(key), [&] { return path; });
      add_token(config, files.vocabulary, read_added_token(config, token, id, path), files.added_tokens);
    }
  }
  if (const Json* name = config.root().find("tokenizer_class"); name && name->is_string()) {
    files.obeys_written_pattern =
        name->as_string() == "TokenizersBackend" || name->as_string() == "PreTrainedTokenizerFast";
  }
  return files;
}

}  // namespace treble
