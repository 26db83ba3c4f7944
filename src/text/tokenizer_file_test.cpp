#include "text/tokenizer_file.h"

#include <doctest/doctest.h>
#include <treble/error.h>
#include <treble/json.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "base/mapped_file.h"
#include "base/testing/temp_folder.h"
#include "text/tokenizer.h"

namespace treble {
namespace {

using testing::TempFolder;

const std::filesystem::path kMicro = std::filesystem::path(TREBLE_TEST_DATA) / "micro" / "release";

Json read_json(const char* name) {
  return parse_json(read_text_file(kMicro / name), "test data", ErrorCode::kInternal);
}

/// The member at a path of names; it is added where it is missing. "#n" is an array's element.
Json& at(Json& root, std::initializer_list<std::string_view> path) {
  Json* value = &root;
  for (const std::string_view name : path) {
    if (name.starts_with('#')) {
      value = &value->as_array()[static_cast<std::size_t>(std::stoi(std::string(name.substr(1))))];
      continue;
    }
    Json::Object& object = value->as_object();
    auto member = object.begin();
    while (member != object.end() && member->first != name) ++member;
    if (member == object.end()) member = object.insert(member, {std::string(name), Json()});
    value = &member->second;
  }
  return *value;
}

using Change = std::function<void(Json&)>;

/// The micro release's tokenizer files, changed.
void write_release(const TempFolder& folder, const Change& change, const Change& change_config = {}) {
  Json tokenizer = read_json("tokenizer.json");
  Json config = read_json("tokenizer_config.json");
  if (change) change(tokenizer);
  if (change_config) change_config(config);
  folder.write("tokenizer.json", dump_json(tokenizer));
  folder.write("tokenizer_config.json", dump_json(config));
}

/// What reading the changed release complains about; empty if nothing.
std::string complaint(const Change& change, const Change& change_config = {}) {
  const TempFolder folder;
  write_release(folder, change, change_config);
  try {
    read_tokenizer_files(folder.path());
    return "";
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kCheckpoint);
    CHECK(std::string(error.what()).find(folder.path().string()) != std::string::npos);
    return error.what();
  }
}

/// Checks that the change is refused and that the message names what is wrong.
void check_refused(const std::string& named, const Change& change, const Change& change_config = {}) {
  CAPTURE(named);
  const std::string message = complaint(change, change_config);
  CAPTURE(message);
  CHECK(message.find(named) != std::string::npos);
}

/// A change that sets one member.
Change set(std::initializer_list<std::string_view> path, Json value) {
  return [path = std::vector<std::string_view>(path), value = std::move(value)](Json& root) {
    Json* parent = &root;
    for (const std::string_view name : path) parent = &at(*parent, {name});
    *parent = value;
  };
}

Json number(const char* text) {
  return Json::Number{text};
}

}  // namespace

TEST_CASE("tokenizer files: the micro release is read") {
  const TokenizerFiles files = read_tokenizer_files(kMicro);
  CHECK(files.vocabulary.end_id() == 607);
  CHECK(files.merges.size() == 351);
  CHECK(files.added_tokens.size() == 26);
  CHECK(files.written_pattern == SplitPattern::kPlain);
  CHECK(files.obeys_written_pattern);
}

TEST_CASE("tokenizer files: variants that mean the same are accepted") {
  CHECK(complaint({}) == "");
  CHECK(complaint(set({"model", "continuing_subword_prefix"}, "")) == "");
  CHECK(complaint(set({"normalizer"}, Json::Object{{"type", "Sequence"},
                                                   {"normalizers", Json::Array{Json::Object{{"type", "NFC"}}}}})) ==
        "");
  CHECK(complaint(set({"post_processor"}, nullptr)) == "");
  CHECK(complaint(set({"padding"}, Json::Object{{"direction", "Right"}})) == "");
  CHECK(complaint([](Json& root) {
          for (Json& merge : at(root, {"model", "merges"}).as_array()) {
            merge = merge.as_array()[0].as_string() + " " + merge.as_array()[1].as_string();
          }
        }) == "");
}

TEST_CASE("tokenizer files: features that are not implemented are refused by name") {
  check_refused("model.type", set({"model", "type"}, "Unigram"));
  check_refused("model.dropout", set({"model", "dropout"}, number("0.1")));
  check_refused("model.byte_fallback", set({"model", "byte_fallback"}, true));
  check_refused("model.ignore_merges", set({"model", "ignore_merges"}, true));
  check_refused("model.end_of_word_suffix", set({"model", "end_of_word_suffix"}, "</w>"));
  check_refused("model.novelty", set({"model", "novelty"}, true));
  check_refused("version", set({"version"}, "2.0"));
  check_refused("normalizer.type", set({"normalizer", "type"}, "NFKC"));
  check_refused("normalizer", set({"normalizer"}, nullptr));
  check_refused("pre_tokenizer.type", set({"pre_tokenizer", "type"}, "Metaspace"));
  check_refused("pretokenizers[0].behavior", set({"pre_tokenizer", "pretokenizers", "#0", "behavior"}, "Removed"));
  check_refused("pretokenizers[0].invert", set({"pre_tokenizer", "pretokenizers", "#0", "invert"}, true));
  check_refused("[a-z]+", set({"pre_tokenizer", "pretokenizers", "#0", "pattern", "Regex"}, "[a-z]+"));
  check_refused("pretokenizers[1].use_regex", set({"pre_tokenizer", "pretokenizers", "#1", "use_regex"}, true));
  check_refused("add_prefix_space", set({"pre_tokenizer", "pretokenizers", "#1", "add_prefix_space"}, true));
  check_refused("has 0 steps", set({"pre_tokenizer", "pretokenizers"}, Json::Array{}));
  check_refused("post_processor.type", set({"post_processor", "type"}, "BertProcessing"));
  check_refused("post_processor.single", set({"post_processor", "single"}, Json::Array{}));
  for (const std::string_view flag : {"lstrip", "rstrip", "single_word", "normalized"}) {
    check_refused("added_tokens[3]." + std::string(flag), set({"added_tokens", "#3", flag}, true));
  }
}

TEST_CASE("tokenizer files: a broken vocabulary is refused") {
  check_refused("model.vocab is missing", [](Json& root) { at(root, {"model"}) = Json::Object{{"type", "BPE"}}; });
  check_refused("model.vocab is an array", set({"model", "vocab"}, Json::Array{}));
  for (const char* id : {"-1", "1.5", "16777216", "2147483648", "99999999999999999999", "1e3"}) {
    check_refused("has the id", set({"model", "vocab", "!"}, number(id)));
  }
  check_refused("has the id", set({"model", "vocab", "!"}, "7"));
  check_refused("repeats", set({"model", "vocab", "zzzz"}, number("0")));
  check_refused("repeats", [](Json& root) {
    at(root, {"model", "vocab"}).as_object().emplace_back("!", Json::Number{"606000"});
  });
  check_refused("byte-level alphabet", set({"model", "vocab", "two words"}, number("700000")));
  check_refused("byte-level alphabet", set({"model", "vocab", "\u4e2d"}, number("700000")));
  check_refused("byte-level alphabet", set({"model", "vocab", ""}, number("700000")));
  check_refused("no token for the byte 0;", [](Json& root) {
    std::erase_if(at(root, {"model", "vocab"}).as_object(), [](const Json::Member& m) { return m.first == "\u0100"; });
  });
}

TEST_CASE("tokenizer files: broken merges are refused") {
  const auto set_merge = [](Json value) { return set({"model", "merges", "#2"}, std::move(value)); };
  check_refused("model.merges[2] is no merge", set_merge(number("1")));
  check_refused("model.merges[2] is no merge", set_merge("ab"));
  check_refused("model.merges[2] is no merge", set_merge("a b c"));
  check_refused("model.merges[2] is no merge", set_merge(Json::Array{"a"}));
  check_refused("model.merges[2] names \"qqqq\"", set_merge(Json::Array{"a", "qqqq"}));
  check_refused("model.merges[2] names \"\"", set_merge(Json::Array{"a", ""}));
  check_refused("model.merges[2] names \"\u4e2d\"", set_merge(Json::Array{"\u4e2d", "a"}));
  check_refused("model.merges[2] makes \"!~\"", set_merge(Json::Array{"!", "~"}));
  check_refused("repeats an earlier merge", [](Json& root) {
    Json::Array& merges = at(root, {"model", "merges"}).as_array();
    merges[2] = merges[0];
  });
  check_refused("model.merges is an object", set({"model", "merges"}, Json::Object{}));
}

TEST_CASE("tokenizer files: broken added tokens are refused") {
  check_refused("added_tokens[0] is a string", set({"added_tokens", "#0"}, "<x>"));
  check_refused("added_tokens[0].content is empty", set({"added_tokens", "#0", "content"}, ""));
  check_refused("added_tokens[0].content is null", set({"added_tokens", "#0", "content"}, nullptr));
  check_refused("which model.vocab uses", set({"added_tokens", "#0", "id"}, number("5")));
  check_refused("but \"<|endoftext|>\" has 608", set({"added_tokens", "#0", "id"}, number("608")));
  check_refused("\"<|im_start|>\" has the id 608", set({"added_tokens", "#0", "content"}, "<|im_start|>"));
  check_refused("has the id", set({"added_tokens", "#0", "id"}, number("-3")));
}

TEST_CASE("tokenizer files: text that is no JSON object and missing files are refused") {
  const TempFolder folder;
  CHECK_THROWS_AS(read_tokenizer_files(folder.path()), Error);
  write_release(folder, {});
  for (const char* text : {"", "[]", "{", "null", "{}", "\xff", "{\"version\":\"1.0\"}"}) {
    CAPTURE(text);
    folder.write("tokenizer.json", text);
    CHECK_THROWS_AS(read_tokenizer_files(folder.path()), Error);
  }
  write_release(folder, {});
  std::filesystem::remove(folder.path() / "tokenizer_config.json");
  CHECK_THROWS_AS(read_tokenizer_files(folder.path()), Error);
}

TEST_CASE("tokenizer files: tokens listed only in tokenizer_config.json are added") {
  const auto listing = [](const char* id, const char* content) {
    const Json token = Json::Object{{"content", content},  {"lstrip", false},      {"rstrip", false},
                                    {"normalized", false}, {"single_word", false}, {"special", true}};
    return set({"added_tokens_decoder"}, Json::Object{{id, token}});
  };
  const TempFolder folder;
  write_release(folder, {}, listing("700", "<more>"));
  const Tokenizer tokenizer(folder.path());
  CHECK(tokenizer.encode("<more>") == std::vector<std::int32_t>{700});
  CHECK(tokenizer.vocab_size() == 701);

  CHECK(complaint({}, listing("608", "<|im_start|>")) == "");
  check_refused("\"<|im_start|>\" has 608", {}, listing("608", "<more>"));
  check_refused("added_tokens_decoder.x has the id", {}, listing("x", "<more>"));
}

TEST_CASE("tokenizer files: the tokenizer's class decides whether the written pattern is used") {
  const std::string marked = "a\u0301\u0325b";  // one piece with marks, two without
  const auto ids = [&](const char* name, PretokenizerChoice choice = PretokenizerChoice::kAuto) {
    const TempFolder folder;
    write_release(
        folder,
        [](Json& root) {
          // Joins the last byte of U+0301 and b where they are in one piece.
          at(root, {"model", "vocab", "\u0123b"}) = Json::Number{"800"};
          at(root, {"model", "merges"}).as_array().push_back(Json::Array{"\u0123", "b"});
        },
        set({"tokenizer_class"}, name ? Json(name) : Json()));
    return Tokenizer(folder.path(), choice).encode("1\u0301b!\u0301");
  };
  const auto generic = ids("TokenizersBackend");
  CHECK(ids("PreTrainedTokenizerFast") == generic);
  CHECK(ids("Qwen3_5Tokenizer") == ids("TokenizersBackend", PretokenizerChoice::kMarks));
  CHECK(ids(nullptr) == ids("TokenizersBackend", PretokenizerChoice::kMarks));
  CHECK(generic == ids("Qwen3_5Tokenizer", PretokenizerChoice::kFile));
  CHECK(generic == ids("Qwen3_5Tokenizer", PretokenizerChoice::kPlain));
}

}  // namespace treble
