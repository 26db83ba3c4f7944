#include "checkpoint/checkpoint.h"

#include <doctest/doctest.h>
#include <treble/error.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "checkpoint/testing/release_files.h"

namespace treble {
namespace {

using testing::FileTensor;
using testing::TempFolder;
using testing::zeros;

std::string refusal(const std::filesystem::path& folder) {
  try {
    const Checkpoint checkpoint(folder);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kCheckpoint);
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, std::string_view part) {
  CAPTURE(text);
  CAPTURE(part);
  return text.find(part) != std::string::npos;
}

FileTensor byte(std::string name) {
  return zeros(std::move(name), "U8", {1}, 1);
}

/// A folder whose backbone and head are those tensors.
void write_release(const TempFolder& folder, const std::vector<FileTensor>& backbone) {
  testing::write_safetensors(folder / "model.safetensors", backbone);
  testing::write_safetensors(folder / "joint_head.safetensors", {byte("hidden_norm.weight")});
}

/// Shards of one tensor each and the index given.
void write_shards(const TempFolder& folder, std::string_view index) {
  testing::write_safetensors(folder / "s1.safetensors", {byte("model.language_model.norm.weight")});
  testing::write_safetensors(folder / "s2.safetensors", {byte("lm_head.weight")});
  testing::write_safetensors(folder / "joint_head.safetensors", {byte("hidden_norm.weight")});
  testing::write_file(folder / "model.safetensors.index.json", index);
}

constexpr std::string_view kIndex = R"({"metadata":{"total_size":2},"weight_map":{"lm_head.weight":"s2.safetensors",)"
                                    R"("model.language_model.norm.weight":"s1.safetensors"}})";

}  // namespace

TEST_CASE("checkpoint: the micro release has its tensors under their canonical names") {
  const Checkpoint checkpoint(testing::micro_release());
  CHECK(checkpoint.folder() == testing::micro_release());
  CHECK(checkpoint.ignored().empty());

  const Checkpoint::Entry* entry = checkpoint.find("text.layers.3.self_attn.q_proj.weight");
  REQUIRE(entry);
  CHECK(entry->stored_name == "model.language_model.layers.3.self_attn.q_proj.weight");
  CHECK(entry->file.filename() == "model.safetensors");
  CHECK(entry->view.describe() == "[1024, 256] bf16");
  CHECK(checkpoint.find("lm_head.weight"));
  CHECK(checkpoint.find("visual.merger.norm.weight"));
  CHECK(checkpoint.find("head.residual_gate")->view.describe() == "[] bf16");
  CHECK_FALSE(checkpoint.find("model.language_model.norm.weight"));
  CHECK_FALSE(checkpoint.find(""));
  CHECK(checkpoint.entries().back().file.filename() == "joint_head.safetensors");
}

TEST_CASE("checkpoint: shards hold the same tensors as the single file") {
  const TempFolder folder;
  testing::copy_micro_release(folder.path());
  testing::split_into_shards(folder.path());
  const Checkpoint single(testing::micro_release());
  const Checkpoint sharded(folder.path());
  REQUIRE(sharded.entries().size() == single.entries().size());
  for (const Checkpoint::Entry& entry : single.entries()) {
    CAPTURE(entry.name);
    const Checkpoint::Entry* other = sharded.find(entry.name);
    REQUIRE(other);
    REQUIRE(other->view.num_bytes() == entry.view.num_bytes());
    CHECK(std::memcmp(other->view.data(), entry.view.data(), entry.view.num_bytes()) == 0);
  }
}

TEST_CASE("checkpoint: the names of every known layout become the same") {
  const std::pair<const char*, const char*> cases[] = {
      {"model.language_model.layers.0.mlp.up_proj.weight", "text.layers.0.mlp.up_proj.weight"},
      {"model.layers.0.mlp.up_proj.weight", "text.layers.0.mlp.up_proj.weight"},
      {"language_model.layers.0.mlp.up_proj.weight", "text.layers.0.mlp.up_proj.weight"},
      {"language_model.model.layers.0.mlp.up_proj.weight", "text.layers.0.mlp.up_proj.weight"},
      {"language_model.lm_head.weight", "lm_head.weight"},
      {"lm_head.weight", "lm_head.weight"},
      {"model.visual.pos_embed.weight", "visual.pos_embed.weight"},
      {"visual.pos_embed.weight", "visual.pos_embed.weight"},
      {"vision_tower.pos_embed.weight", "visual.pos_embed.weight"},
      {"something.else", "something.else"},
  };
  for (const auto& [stored, canonical] : cases) {
    CAPTURE(stored);
    const TempFolder folder;
    write_release(folder, {byte(stored), byte("model.language_model.norm.weight")});
    const Checkpoint checkpoint(folder.path());
    const Checkpoint::Entry* entry = checkpoint.find(canonical);
    REQUIRE(entry);
    CHECK(entry->stored_name == stored);
  }
}

TEST_CASE("checkpoint: multi-token prediction is left out and listed") {
  const TempFolder folder;
  write_release(folder, {byte("model.language_model.norm.weight"), byte("mtp.fc.weight"),
                         byte("language_model.mtp.norm.weight"), byte("model.mtp.norm.weight")});
  const Checkpoint checkpoint(folder.path());
  CHECK(checkpoint.ignored().size() == 3);
  CHECK(checkpoint.entries().size() == 2);
}

TEST_CASE("checkpoint: the single file is read, not the index, when both are there") {
  const TempFolder folder;
  write_shards(folder, "not even JSON");
  testing::write_safetensors(folder / "model.safetensors", {byte("model.norm.weight")});
  CHECK(Checkpoint(folder.path()).entries().size() == 2);
}

TEST_CASE("checkpoint: a path that is no release folder is named") {
  const TempFolder folder;
  CHECK(contains(refusal(folder / "none"), (folder / "none").string() + " does not exist, expected a release folder"));
  testing::write_file(folder / "file", "");
  CHECK(contains(refusal(folder / "file"), " is a file, expected a release folder"));
  CHECK(contains(refusal(folder.path()), " has neither model.safetensors nor model.safetensors.index.json"));
}

TEST_CASE("checkpoint: a release without its head is refused") {
  const TempFolder folder;
  testing::copy_micro_release(folder.path());
  std::filesystem::remove(folder / "joint_head.safetensors");
  CHECK(contains(refusal(folder.path()), "joint_head.safetensors does not exist, expected the decision head"));
}

TEST_CASE("checkpoint: a GGUF conversion is named as what it is") {
  const TempFolder folder;
  testing::write_file(folder / "clef-q4.gguf", "GGUF\x03");
  CHECK(contains(refusal(folder.path()), "clef-q4.gguf is a GGUF file, expected safetensors"));
  CHECK(contains(refusal(folder / "clef-q4.gguf"), "clef-q4.gguf is a GGUF file, expected a folder"));
  testing::write_file(folder / "model.safetensors", "GGUF\x03");
  CHECK(contains(refusal(folder.path()), "model.safetensors is a GGUF file, expected safetensors"));
}

TEST_CASE("checkpoint: an MLX conversion is named as what it is") {
  const TempFolder folder;
  const std::string conv = "layers.0.linear_attn.conv1d.weight";
  write_release(folder, {zeros("language_model.model." + conv, "BF16", {8, 4, 1}, 64)});
  CHECK(contains(refusal(folder.path()), "model.safetensors is an MLX conversion: \"language_model.model." + conv +
                                             "\" is [8, 4, 1] bf16, expected [conv_dim, 1, kernel]"));
  write_release(folder, {zeros("language_model.model." + conv, "BF16", {8, 1, 4}, 64)});
  CHECK(refusal(folder.path()) == "no error");
}

TEST_CASE("checkpoint: files without a text model are refused") {
  const TempFolder folder;
  write_release(folder, {byte("encoder.weight"), byte("lm_head.weight")});
  CHECK(contains(refusal(folder.path()), " has no text model: none of its 2 tensors"));
}

TEST_CASE("checkpoint: one tensor under two layouts is refused") {
  const TempFolder folder;
  write_release(folder, {byte("model.language_model.norm.weight"), byte("model.norm.weight")});
  CHECK(contains(refusal(folder.path()),
                 "holds \"model.norm.weight\", which model.safetensors holds as "
                 "\"model.language_model.norm.weight\" too"));
}

TEST_CASE("checkpoint: a tensor in two shards is refused, and both are named") {
  const TempFolder folder;
  write_shards(folder, kIndex);
  testing::write_safetensors(folder / "s2.safetensors",
                             {byte("lm_head.weight"), byte("model.language_model.norm.weight")});
  const std::string message = refusal(folder.path());
  CHECK(contains(message, "s2.safetensors holds \"model.language_model.norm.weight\", which s1.safetensors holds"));
}

TEST_CASE("checkpoint: a tensor that a shard has and the index forgets is read") {
  const TempFolder folder;
  write_shards(folder, kIndex);
  testing::write_safetensors(folder / "s2.safetensors",
                             {byte("lm_head.weight"), byte("model.visual.pos_embed.weight")});
  CHECK(Checkpoint(folder.path()).find("visual.pos_embed.weight"));
}

TEST_CASE("checkpoint: a tensor that the index names and its shard lacks is refused, also if another shard has it") {
  const TempFolder folder;
  write_shards(folder, R"({"weight_map":{"lm_head.weight":"s1.safetensors","x":"s2.safetensors"}})");
  CHECK(contains(refusal(folder.path()),
                 "index.json says that \"s1.safetensors\" holds \"lm_head.weight\", which it does not"));
}

TEST_CASE("checkpoint: a missing shard is named") {
  const TempFolder folder;
  write_shards(folder, kIndex);
  std::filesystem::remove(folder / "s2.safetensors");
  CHECK(contains(refusal(folder.path()), "s2.safetensors does not exist, model.safetensors.index.json names it"));
}

TEST_CASE("checkpoint: a broken index is refused") {
  const std::pair<const char*, const char*> cases[] = {
      {"not JSON", "model.safetensors.index.json"},
      {"[]", " has no weight_map"},
      {"{}", " has no weight_map"},
      {R"({"weight_map":{}})", " has no weight_map"},
      {R"({"weight_map":{"a":1}})", R"(: "a" is a number, expected the name of a shard)"},
      {R"({"weight_map":{"a":"s1.safetensors","a":"s2.safetensors"}})", R"(: "a" is in the weight_map twice)"},
  };
  for (const auto& [index, message] : cases) {
    CAPTURE(index);
    const TempFolder folder;
    write_shards(folder, index);
    CHECK(contains(refusal(folder.path()), message));
  }
}

TEST_CASE("checkpoint: an index cannot lead out of its folder") {
  for (const char* shard : {"../s1.safetensors", "/etc/passwd", "..", ".", "", "a/b", "a\\\\b", "C:x", "a\\u0000b"}) {
    CAPTURE(shard);
    const TempFolder folder;
    write_shards(folder, std::string(R"({"weight_map":{"a":")") + shard + R"("}})");
    CHECK(contains(refusal(folder.path()), "expected the plain name of a file in the same folder"));
  }
}

}  // namespace treble
