#include "text/bpe.h"

#include <doctest/doctest.h>

#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace treble {
namespace {

using Ids = std::vector<std::int32_t>;
using Pairs = std::vector<std::pair<std::string, std::string>>;

/// A vocabulary of all single bytes and of what the merges make; the id of a byte is its value.
struct Model {
  explicit Model(const Pairs& pairs, const std::vector<std::string>& more = {})
      : vocabulary(256 + pairs.size() + more.size()), merges(pairs.size()) {
    for (std::int32_t byte = 0; byte < 256; ++byte) add(std::string(1, static_cast<char>(byte)));
    for (const auto& [left, right] : pairs) add(left + right);
    for (const std::string& token : more) add(token);
    for (const auto& [left, right] : pairs) {
      merges.add(vocabulary.find(left), vocabulary.find(right), vocabulary.find(left + right));
    }
  }

  void add(const std::string& token) { vocabulary.add(token, vocabulary.end_id()); }

  Vocabulary vocabulary;
  MergeTable merges;
};

Ids encode(const Bpe& bpe, std::string_view piece) {
  Ids ids;
  bpe.encode(piece, ids);
  return ids;
}

/// The definition, in quadratic time.
Ids encode_plainly(const Model& model, std::string_view piece) {
  Ids ids;
  for (const char c : piece) ids.push_back(model.vocabulary.find({&c, 1}));
  for (;;) {
    MergeTable::Rule best;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const MergeTable::Rule& rule = model.merges.find(ids[i], ids[i + 1]);
      if (rule.rank >= best.rank) continue;
      best = rule;
      at = i;
    }
    if (best.rank == MergeTable::kNoRank) return ids;
    ids[at] = best.merged;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

}  // namespace

TEST_CASE("bpe: the rule of lowest rank goes first, wherever it stands") {
  const Model model(Pairs{{"b", "c"}, {"a", "b"}, {"a", "bc"}});
  const Bpe bpe(model.vocabulary, model.merges);
  CHECK(encode(bpe, "ab") == Ids{257});
  CHECK(encode(bpe, "abc") == Ids{258});
  CHECK(encode(bpe, "abd") == Ids{257, 'd'});
  CHECK(encode(bpe, "") == Ids{});
}

TEST_CASE("bpe: of equal pairs the leftmost is joined first") {
  const Model model(Pairs{{"a", "a"}});
  const Bpe bpe(model.vocabulary, model.merges);
  CHECK(encode(bpe, "aaa") == Ids{256, 'a'});
  CHECK(encode(bpe, "aaaaa") == Ids{256, 256, 'a'});
}

TEST_CASE("bpe: a token that its own bytes do not merge to is never chosen, however often it is asked for") {
  const Model model(Pairs{{"a", "b"}}, {"abc", "x y"});
  const Bpe bpe(model.vocabulary, model.merges);
  for (int round = 0; round < 3; ++round) {
    CHECK(encode(bpe, "abc") == Ids{256, 'c'});
    CHECK(encode(bpe, "x y") == Ids{'x', ' ', 'y'});
    CHECK(encode(bpe, "ab") == Ids{256});
  }
}

TEST_CASE("bpe: random rules on short and long pieces give what the definition gives") {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    Pairs pairs;
    std::vector<std::string> tokens = {"a", "b", "c"};
    for (int i = 0; i < 40; ++i) {
      const std::string left = tokens[random() % tokens.size()];
      const std::string right = tokens[random() % tokens.size()];
      if (left.size() + right.size() > 24) continue;
      pairs.emplace_back(left, right);
      tokens.push_back(left + right);
    }
    const Model model(pairs);
    const Bpe bpe(model.vocabulary, model.merges);
    for (const std::size_t length : {1, 2, 3, 5, 17, 63, 64, 65, 66, 200, 1500}) {
      std::string piece;
      for (std::size_t i = 0; i < length; ++i) piece += static_cast<char>('a' + random() % 3);
      CAPTURE(round);
      CAPTURE(piece);
      CHECK(encode(bpe, piece) == encode_plainly(model, piece));
    }
  }
}

TEST_CASE("bpe: a piece of 200,000 equal bytes is halved as far as the rules go") {
  const Model model(Pairs{{"a", "a"}, {"aa", "aa"}, {"aaaa", "aaaa"}});
  const Bpe bpe(model.vocabulary, model.merges);
  CHECK(encode(bpe, std::string(200'000, 'a')) == Ids(25'000, 258));
  CHECK(encode(bpe, std::string(200'003, 'a')).size() == 25'002);
}

TEST_CASE("vocabulary: bytes and ids are found both ways, repeats are refused, ids may have gaps") {
  Vocabulary vocabulary(4);
  CHECK(vocabulary.add("one", 5));
  CHECK(vocabulary.add(std::string_view("\0\xff", 2), 2));
  CHECK_FALSE(vocabulary.add("one", 6));
  CHECK_FALSE(vocabulary.add("two", 5));
  CHECK(vocabulary.find("one") == 5);
  CHECK(vocabulary.find(std::string_view("\0\xff", 2)) == 2);
  CHECK(vocabulary.find("two") == -1);
  CHECK(vocabulary.find("on") == -1);
  CHECK(vocabulary.find("") == -1);
  CHECK(vocabulary.bytes(5) == "one");
  CHECK(vocabulary.bytes(3).empty());
  CHECK(vocabulary.bytes(6).empty());
  CHECK(vocabulary.bytes(-1).empty());
  CHECK(vocabulary.end_id() == 6);
}

TEST_CASE("merge table: a pair has one rule, ranked by the order of adding") {
  MergeTable merges(3);
  CHECK(merges.add(1, 2, 9));
  CHECK(merges.add(2, 1, 8));
  CHECK_FALSE(merges.add(1, 2, 7));
  CHECK(merges.find(1, 2).rank == 0);
  CHECK(merges.find(2, 1).merged == 8);
  CHECK(merges.find(1, 1).rank == MergeTable::kNoRank);
  CHECK(merges.size() == 2);
}

}  // namespace treble
