#include "text/tokenizer.h"

#include <doctest/doctest.h>
#include <treble/error.h>
#include <treble/json.h>

#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/mapped_file.h"
#include "text/nfc.h"

namespace treble {
namespace {

using Ids = std::vector<std::int32_t>;

const std::filesystem::path kData = TREBLE_TEST_DATA;
// The full-size vocabulary, reduced to what the texts of vectors.json can reach.
const std::filesystem::path kVectors = kData / "tokenizer_vectors";
const std::filesystem::path kMicro = kData / "micro" / "release";

std::string nfc(std::string_view text) {
  std::string storage;
  return std::string(to_nfc(text, storage));
}

std::string repeat(std::string_view unit, std::size_t num_bytes) {
  std::string text;
  while (text.size() < num_bytes) text += unit;
  return text;
}

}  // namespace

TEST_CASE("tokenizer: the public test vectors have their ids") {
  const Tokenizer tokenizer(kVectors, PretokenizerChoice::kMarks);
  const Json vectors = parse_json(read_text_file(kVectors / "vectors.json"), "test data", ErrorCode::kInternal);
  REQUIRE(vectors.as_array().size() == 46);
  for (const Json& vector : vectors.as_array()) {
    const std::string& text = vector.find("text")->as_string();
    CAPTURE(text);
    Ids expected;
    for (const Json& id : vector.find("ids")->as_array()) expected.push_back(static_cast<std::int32_t>(id.as_double()));
    CHECK(tokenizer.encode(text) == expected);
    CHECK(tokenizer.decode(expected) == nfc(text));
  }
}

TEST_CASE("tokenizer: marks stand alone in the older pattern") {
  const std::string text = "\u0301!I";
  const Ids in_words = Tokenizer(kVectors, PretokenizerChoice::kMarks).encode(text);
  const Ids alone = Tokenizer(kVectors, PretokenizerChoice::kPlain).encode(text);
  CHECK(in_words == Ids{52033, 87383});
  CHECK(alone != in_words);
  CHECK(Tokenizer(kVectors).encode(text) == alone);  // its class obeys the file, which has the older pattern
}

TEST_CASE("tokenizer: added tokens are found by their names") {
  const Tokenizer tokenizer(kVectors);
  CHECK(tokenizer.vocab_size() == 248077);
  CHECK(tokenizer.added_token("<|endoftext|>") == 248044);
  CHECK(tokenizer.added_token("<tts_text_bos>") == 248073);
  CHECK(tokenizer.added_token("<|im_start") == -1);
}

TEST_CASE("tokenizer: an added token ends what stands before it, inside words too") {
  const Tokenizer tokenizer(kMicro);
  const std::int32_t think = tokenizer.added_token("<think>");
  const auto expected = [&](std::string_view before, std::string_view after) {
    Ids ids = tokenizer.encode(before);
    ids.push_back(think);
    tokenizer.encode(after, ids);
    return ids;
  };
  CHECK(tokenizer.encode("a<think>b") == expected("a", "b"));
  CHECK(tokenizer.encode("the <think> state") == expected("the ", " state"));
  CHECK(tokenizer.encode("x  <think>") == expected("x  ", ""));
  CHECK(tokenizer.encode("<think>\u0338a") == expected("", "\u0338a"));
  CHECK(tokenizer.encode("<<think>>") == expected("<", ">"));
  CHECK(tokenizer.encode("<Think>").size() > 1);
}

TEST_CASE("tokenizer: an empty text has no ids, and ids are appended to those there") {
  const Tokenizer tokenizer(kMicro);
  CHECK(tokenizer.encode("").empty());
  Ids ids = {1, 2};
  tokenizer.encode("", ids);
  CHECK(ids == Ids{1, 2});
  tokenizer.encode("!", ids);
  CHECK(ids == Ids{1, 2, 0});
}

TEST_CASE("tokenizer: ids that do not exist are left out of decoded text") {
  const Tokenizer tokenizer(kVectors);
  CHECK(tokenizer.decode({9419, -1, 1, 300'000, 248'046, 2'147'483'647, 0}) == "Hello\"<|im_end|>!");
}

TEST_CASE("tokenizer: bytes that are not UTF-8 are refused with their place") {
  const Tokenizer tokenizer(kMicro);
  for (const std::string_view bad :
       {"\xff", "\x80", "\xc3", "\xe4\xb8", "\xed\xa0\x80", "\xc0\x80", "\xf4\x90\x80\x80"}) {
    const std::string text = "fine \u00e9 " + std::string(bad);
    CAPTURE(text);
    Ids ids = {7};
    try {
      tokenizer.encode(text, ids);
      FAIL_CHECK("accepted");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kRequest);
      CHECK(std::string(error.what()).find("byte 8 ") != std::string::npos);
    }
    CHECK(ids == Ids{7});
  }
}

TEST_CASE("tokenizer: NUL and other control characters are text") {
  const Tokenizer tokenizer(kMicro);
  const std::string text("a\0b\x01\x7f\u0085", 7);
  CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
}

TEST_CASE("tokenizer: random text is kept whole, but for its normalisation") {
  const std::string_view parts[] = {
      "the state", " ",       "\n",    "'s",           "\u0301",           "e\u0323\u0302",
      "1234",      "<think>", "<|im_", "\u4e2d\u6587", "\u2b50\ufe0f",     "\u1112\u1161\u11ab",
      "\u00a0\t",  "\u0958",  "!?",    "'\u017f",      "\U0001F602\u200d", "\u3000"};
  std::mt19937 random(3);
  for (const PretokenizerChoice choice : {PretokenizerChoice::kMarks, PretokenizerChoice::kPlain}) {
    const Tokenizer tokenizer(kMicro, choice);
    for (int round = 0; round < 2000; ++round) {
      std::string text;
      for (std::size_t i = random() % 12; i > 0; --i) text += parts[random() % std::size(parts)];
      CAPTURE(text);
      // Added tokens hold no character that composes with what stands around them, but "<" and ">" do with U+0338 only.
      CHECK(tokenizer.decode(tokenizer.encode(text)) == nfc(text));
    }
  }
}

TEST_CASE("tokenizer: long monotonous texts are encoded whole") {
  const Tokenizer tokenizer(kVectors, PretokenizerChoice::kMarks);
  for (const std::string_view unit :
       {"a", " ", "\n", "'", "=", "\u0301", "\u0301\u0323", "e\u0323\u0301", "<|im_", "<tts_text_bos_singl",
        "<|im_start|>", "\u4f60\u597d", "\u2b50\ufe0f", "\u1112\u1161\u11ab", "  \n \t\r\n", "'s", "1", "\u00a0"}) {
    CAPTURE(unit);
    const std::string text = repeat(unit, 200'000);
    CHECK(tokenizer.decode(tokenizer.encode(text)) == nfc(text));
  }
}

TEST_CASE("tokenizer: many threads get what one gets") {
  const Tokenizer tokenizer(kVectors, PretokenizerChoice::kMarks);
  const Json vectors = parse_json(read_text_file(kVectors / "vectors.json"), "test data", ErrorCode::kInternal);
  std::vector<std::vector<Ids>> of_thread(4);
  std::vector<std::thread> threads;
  for (std::vector<Ids>& results : of_thread) {
    threads.emplace_back([&] {
      for (const Json& vector : vectors.as_array())
        results.push_back(tokenizer.encode(vector.find("text")->as_string()));
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<Ids> alone;
  for (const Json& vector : vectors.as_array()) alone.push_back(tokenizer.encode(vector.find("text")->as_string()));
  for (const std::vector<Ids>& results : of_thread) CHECK(results == alone);
}

}  // namespace treble
