#include "checkpoint/inspect.h"

#include <doctest/doctest.h>
#include <treble/error.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/mapped_file.h"
#include "checkpoint/storage_format.h"
#include "checkpoint/testing/release_files.h"

namespace treble {
namespace {

using testing::FileTensor;
using testing::TempFolder;
using testing::zeros;

using Strings = std::vector<std::string>;

/// A copy of the micro release.
struct Release : TempFolder {
  Release() { testing::copy_micro_release(path()); }
  void edit(const std::function<void(std::vector<FileTensor>&)>& change) const {
    testing::edit_safetensors(*this / "model.safetensors", change);
  }
  ReleaseSummary inspect() const { return inspect_release(path()); }
};

bool has(const Strings& lines, std::string_view part) {
  CAPTURE(part);
  for (const std::string& line : lines)
    if (line.find(part) != std::string::npos) return true;
  for (const std::string& line : lines) MESSAGE(line);
  return false;
}

const ReleaseSummary::Group& group(const ReleaseSummary& summary, std::string_view name) {
  const auto found = std::ranges::find(summary.groups, name, &ReleaseSummary::Group::name);
  REQUIRE(found != summary.groups.end());
  return *found;
}

const ReleaseSummary::Module& module(const ReleaseSummary& summary, std::string_view name) {
  const auto found = std::ranges::find(summary.modules, name, &ReleaseSummary::Module::name);
  REQUIRE(found != summary.modules.end());
  return *found;
}

constexpr const char* kUpProj = "model.language_model.layers.0.mlp.up_proj";  // [256, 256]

/// Puts other tensors in the place of one module's weight.
void replace_weight(std::vector<FileTensor>& tensors, const std::string& name, const std::vector<FileTensor>& parts) {
  REQUIRE(std::erase_if(tensors, [&](const FileTensor& t) { return t.name == name + ".weight"; }) == 1);
  for (const FileTensor& part : parts) tensors.push_back(part);
}

FileTensor text_tensor(std::string name, std::string text) {
  const auto size = static_cast<std::int64_t>(text.size());
  return {std::move(name), "U8", {size}, std::move(text)};
}

std::vector<FileTensor> nf4_parts(const std::string& name, const std::string& shape, std::size_t num_codes) {
  return {zeros(name + ".weight", "U8", {static_cast<std::int64_t>(num_codes), 1}, num_codes),
          zeros(name + ".weight.absmax", "U8", {1024}, 1024),
          zeros(name + ".weight.quant_map", "F32", {16}, 64),
          zeros(name + ".weight.nested_absmax", "F32", {4}, 16),
          zeros(name + ".weight.nested_quant_map", "F32", {256}, 1024),
          text_tensor(name + ".weight.quant_state.bitsandbytes__nf4",
                      R"({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "nested_blocksize": 256, )"
                      R"("nested_offset": 0.5, "shape": )" +
                          shape + "}")};
}

std::vector<FileTensor> int8_parts(const std::string& name, const std::string& description) {
  return {zeros(name + ".weight", "I8", {256, 256}, 65536), zeros(name + ".weight_scale", "F32", {256, 1}, 1024),
          zeros(name + ".bias", "BF16", {256}, 512), text_tensor(name + ".comfy_quant", description)};
}

}  // namespace

TEST_CASE("inspect: the micro release is complete, and its figures add up") {
  const ReleaseSummary summary = inspect_release(testing::micro_release());
  CHECK(summary.is_complete());
  for (const Strings* lines : {&summary.missing_files, &summary.unknown_files, &summary.missing_tensors,
                               &summary.unknown_tensors, &summary.ignored_tensors, &summary.problems})
    CHECK(lines->empty());
  CHECK(summary.known_size.empty());

  std::int64_t tensors = 0, parameters = 0, module_parameters = 0;
  std::uint64_t bytes = 0, module_bytes = 0;
  for (const auto& g : summary.groups) {
    tensors += g.tensors;
    parameters += g.parameters;
    bytes += g.bytes;
    CHECK(g.dtypes.size() == 1);
    CHECK(g.dtypes.at("bf16") == g.tensors);
    CHECK(g.formats.size() == 1);
  }
  for (const auto& m : summary.modules) {
    module_parameters += m.parameters;
    module_bytes += m.bytes;
  }
  CHECK(tensors == 56 + 33 + 86);
  CHECK(parameters == summary.backbone_parameters + summary.head_parameters);
  CHECK(parameters == module_parameters);
  CHECK(bytes == module_bytes);
  CHECK(bytes == summary.weight_bytes);
  CHECK(bytes == 2 * static_cast<std::uint64_t>(parameters));  // all bf16
  // The two files are a length of 8 bytes, a header and these weights.
  CHECK(bytes == 10256928 - 8 - 10288 + 575280 - 8 - 8096);

  CHECK(group(summary, "text attention").tensors == 6);
  CHECK(group(summary, "text delta net").tensors == 27);
  CHECK(group(summary, "text mlp").tensors == 12);
  CHECK(group(summary, "text norms").tensors == 9);
  CHECK(group(summary, "embedding").parameters == 640 * 256);
}

TEST_CASE("inspect: layers of the same form share a row") {
  const ReleaseSummary summary = inspect_release(testing::micro_release());
  const ReleaseSummary::Module& row = module(summary, "text.layers.{0..2}.linear_attn.in_proj_qkv");
  CHECK(row.copies == 3);
  CHECK(row.shape == std::vector<std::int64_t>{1280, 256});
  CHECK(row.parameters == 3 * 1280 * 256);
  CHECK(row.format == "bf16");
  CHECK(module(summary, "text.layers.3.self_attn.q_proj").copies == 1);
  CHECK(module(summary, "head.layers.{0..1}.self_attn.out_proj").copies == 2);
  CHECK(module(summary, "head.residual_scorer.3").shape == std::vector<std::int64_t>{1, 64});
}

TEST_CASE("inspect: the estimate of activation memory follows its formula") {
  const Json config =
      parse_json(read_text_file(testing::micro_release() / "config.json"), "test", ErrorCode::kInternal);
  const Json head =
      parse_json(read_text_file(testing::micro_release() / "joint_head_config.json"), "test", ErrorCode::kInternal);
  // hidden 256; the delta net is the widest part: conv_dim 1280, value_dim 768; head width 64
  CHECK(activation_bytes_per_token(config, head) == 4 * (3 * 256 + 2 * 1280 + 2 * 768 + 3 * 64));
  CHECK(inspect_release(testing::micro_release()).activation_bytes_per_1k_tokens ==
        1000 * activation_bytes_per_token(config, head));
}

TEST_CASE("inspect: a path that is no folder is an error") {
  const TempFolder folder;
  CHECK_THROWS_AS(inspect_release(folder / "none"), Error);
  testing::write_file(folder / "file", "");
  CHECK_THROWS_AS(inspect_release(folder / "file"), Error);
}

TEST_CASE("inspect: an empty folder lacks everything") {
  const TempFolder folder;
  const ReleaseSummary summary = inspect_release(folder.path());
  CHECK_FALSE(summary.is_complete());
  CHECK(summary.missing_files.size() == 7);
  CHECK(has(summary.missing_files, "model.safetensors or model.safetensors.index.json"));
  CHECK(has(summary.missing_files, "joint_head.safetensors"));
  CHECK(has(summary.missing_files, "processor_config.json"));
  CHECK(summary.weight_bytes == 0);
  CHECK(to_table(summary).find("missing files") != std::string::npos);
}

TEST_CASE("inspect: files that nothing reads are listed, and do not make a release incomplete") {
  const Release release;
  testing::write_file(release / "notes.txt", "x");
  testing::write_safetensors(release / "other.safetensors", {});
  std::filesystem::create_directory(release / "sub");
  const ReleaseSummary summary = release.inspect();
  CHECK(summary.unknown_files == Strings{"notes.txt", "other.safetensors", "sub/"});
  CHECK(summary.is_complete());
}

TEST_CASE("inspect: missing, unknown and ignored tensors are listed by name") {
  const Release release;
  release.edit([](std::vector<FileTensor>& tensors) {
    std::erase_if(tensors, [](const FileTensor& t) { return t.name.find(".up_proj.") != std::string::npos; });
    tensors.push_back(zeros("model.language_model.layers.0.mlp.gate_up_proj.weight", "BF16", {2}, 4));
    tensors.push_back(zeros("model.language_model.layers.0.mlp.down_proj.bias", "BF16", {256}, 512));
    tensors.push_back(zeros("mtp.fc.weight", "BF16", {2}, 4));
  });
  const ReleaseSummary summary = release.inspect();
  CHECK(summary.missing_tensors.size() == 4);
  CHECK(summary.unknown_tensors ==
        Strings{"text.layers.0.mlp.down_proj.bias", "text.layers.0.mlp.gate_up_proj.weight"});
  CHECK(summary.ignored_tensors == Strings{"mtp.fc.weight"});
  CHECK_FALSE(summary.is_complete());
  CHECK(to_table(summary).find("  text.layers.{0..3}.mlp.up_proj.weight\n") != std::string::npos);
}

TEST_CASE("inspect: a missing head tensor is listed by name") {
  const Release release;
  testing::edit_safetensors(release / "joint_head.safetensors", [](std::vector<FileTensor>& tensors) {
    std::erase_if(tensors, [](const FileTensor& t) { return t.name == "residual_gate"; });
  });
  CHECK(release.inspect().missing_tensors == Strings{"head.residual_gate"});
}

TEST_CASE("inspect: a transposed weight is a problem that gives both shapes") {
  const Release release;
  release.edit([](std::vector<FileTensor>& tensors) {
    for (FileTensor& tensor : tensors)
      if (tensor.name.ends_with("layers.3.self_attn.q_proj.weight")) std::swap(tensor.shape[0], tensor.shape[1]);
  });
  CHECK(release.inspect().problems ==
        Strings{"\"text.layers.3.self_attn.q_proj.weight\" is [256, 1024], the configuration implies [1024, 256]"});
}

TEST_CASE("inspect: with tied embeddings lm_head may be there or not") {
  const Release release;
  std::string config = testing::read_file(release / "config.json");
  for (std::size_t at = 0; (at = config.find("\"tie_word_embeddings\": false", at)) != std::string::npos;)
    config.replace(at, 28, "\"tie_word_embeddings\": true");
  testing::write_file(release / "config.json", config);
  CHECK(release.inspect().is_complete());
  release.edit([](std::vector<FileTensor>& tensors) {
    std::erase_if(tensors, [](const FileTensor& t) { return t.name == "lm_head.weight"; });
  });
  CHECK(release.inspect().is_complete());
}

TEST_CASE("inspect: shards are read like a single file; a missing one leaves the rest") {
  const Release release;
  testing::split_into_shards(release.path());
  CHECK(release.inspect().is_complete());
  CHECK(release.inspect().weight_bytes == inspect_release(testing::micro_release()).weight_bytes);

  std::filesystem::remove(release / "model-00002-of-00002.safetensors");
  const ReleaseSummary summary = release.inspect();
  CHECK(summary.missing_files == Strings{"model-00002-of-00002.safetensors"});
  CHECK(summary.missing_tensors.size() > 20);
  CHECK(group(summary, "embedding").tensors == 1);
}

TEST_CASE("inspect: a tensor that the index names and its shard lacks is a problem") {
  const Release release;
  testing::split_into_shards(release.path());
  testing::edit_safetensors(release / "model-00001-of-00002.safetensors",
                            [](std::vector<FileTensor>& tensors) { tensors.pop_back(); });
  const ReleaseSummary summary = release.inspect();
  CHECK(has(summary.problems, "says that \"model-00001-of-00002.safetensors\" holds"));
  CHECK(summary.missing_tensors.size() == 1);
}

TEST_CASE("inspect: without an index, or with a broken one, the shards are still shown") {
  const Release release;
  testing::split_into_shards(release.path());
  testing::write_file(release / "model.safetensors.index.json", "{");
  ReleaseSummary summary = release.inspect();
  CHECK(has(summary.problems, "model.safetensors.index.json"));
  CHECK(summary.missing_tensors.empty());
  std::filesystem::remove(release / "model.safetensors.index.json");
  summary = release.inspect();
  CHECK(has(summary.missing_files, "model.safetensors or model.safetensors.index.json"));
  CHECK(summary.missing_tensors.empty());
}

TEST_CASE("inspect: a broken weights file is a problem, and the head is still shown") {
  const Release release;
  testing::write_file(release / "model.safetensors", "GGUF");
  const ReleaseSummary summary = release.inspect();
  CHECK(has(summary.problems, "model.safetensors is a GGUF file"));
  CHECK(group(summary, "head").tensors == 86);
  CHECK(summary.missing_tensors.size() == 89);
}

TEST_CASE("inspect: broken configurations are problems, and the tensors are still shown") {
  const Release release;
  testing::write_file(release / "config.json", "{");
  testing::write_file(release / "joint_head_config.json", R"({"hidden_size": -1})");
  const ReleaseSummary summary = release.inspect();
  CHECK(has(summary.problems, "config.json"));
  CHECK(has(summary.problems, "hidden_size is -1, expected 1 to"));
  CHECK(summary.missing_tensors.empty());
  CHECK(summary.unknown_tensors.empty());
  CHECK(summary.activation_bytes_per_1k_tokens == 0);
  CHECK(group(summary, "text mlp").tensors == 12);
}

TEST_CASE("inspect: configurations of the wrong type are problems") {
  const Release release;
  for (const char* config : {"[]", "null", R"({"text_config": 1})", R"({"text_config": {"hidden_size": "x"}})",
                             R"({"text_config": null, "vision_config": [], "quantization_config": 3})"}) {
    CAPTURE(config);
    testing::write_file(release / "config.json", config);
    testing::write_file(release / "joint_head_config.json", config);
    CHECK_FALSE(release.inspect().is_complete());
  }
}

TEST_CASE("inspect: GGUF and MLX conversions are named as what they are") {
  const TempFolder gguf;
  testing::write_file(gguf / "clef-q4.gguf", "GGUF");
  CHECK(has(inspect_release(gguf.path()).problems, "is a GGUF file"));
  const TempFolder mlx;
  testing::write_safetensors(mlx / "model.safetensors",
                             {zeros("language_model.model.layers.0.linear_attn.conv1d.weight", "BF16", {8, 4, 1}, 64)});
  CHECK(has(inspect_release(mlx.path()).problems, "is an MLX conversion"));
}

TEST_CASE("inspect: an nf4 module counts its unpacked parameters and is complete with its parts") {
  const Release release;
  const ReleaseSummary dense = release.inspect();
  release.edit([](std::vector<FileTensor>& tensors) {
    replace_weight(tensors, kUpProj, nf4_parts(kUpProj, "[256, 256]", 32768));
  });
  const ReleaseSummary summary = release.inspect();
  CHECK(summary.is_complete());
  CHECK(summary.backbone_parameters == dense.backbone_parameters);
  const ReleaseSummary::Module& row = module(summary, "text.layers.0.mlp.up_proj");
  CHECK(row.format == "nf4");
  CHECK(row.shape == std::vector<std::int64_t>{256, 256});
  CHECK(row.bytes == 32768 + 1024 + 64 + 16 + 1024 + 127);
  CHECK(module(summary, "text.layers.{1..3}.mlp.up_proj").format == "bf16");
  CHECK(group(summary, "text mlp").formats.at("nf4") == 1);
  CHECK(group(summary, "text mlp").formats.at("bf16") == 11);
}

TEST_CASE("inspect: an nf4 module whose state and bytes do not agree is a problem") {
  for (const auto& [shape, problem] : {std::pair{"[256, 255]", "has 32768 bytes of nf4 codes, [256, 255] needs 32640"},
                                       std::pair{"[256, -1]", "has a quant_state without a valid shape"},
                                       std::pair{"[4294967296, 4294967296]", "has a quant_state without a valid shape"},
                                       std::pair{"oops", "has a quant_state without a valid shape"}}) {
    const Release release;
    release.edit(
        [&](std::vector<FileTensor>& tensors) { replace_weight(tensors, kUpProj, nf4_parts(kUpProj, shape, 32768)); });
    CHECK(has(release.inspect().problems, problem));
  }
}

TEST_CASE("inspect: an int8 module is convrot when its description says so; its calibrated bias is no parameter") {
  const Release release;
  const std::int64_t parameters = release.inspect().backbone_parameters;
  release.edit([](std::vector<FileTensor>& tensors) {
    const std::string down = "model.language_model.layers.0.mlp.down_proj",
                      gate = "model.language_model.layers.0.mlp.gate_proj";
    replace_weight(tensors, kUpProj,
                   int8_parts(kUpProj, R"({"format": "int8_tensorwise", "convrot": true})" + std::string(3, '\0')));
    replace_weight(tensors, gate, int8_parts(gate, R"({"params": {"convrot": true, "convrot_groupsize": 256}})"));
    replace_weight(tensors, down, int8_parts(down, R"({"format": "int8_tensorwise"})"));
  });
  const ReleaseSummary summary = release.inspect();
  CHECK(summary.is_complete());
  CHECK(summary.backbone_parameters == parameters);
  CHECK(module(summary, "text.layers.0.mlp.up_proj").format == "int8-convrot");
  CHECK(module(summary, "text.layers.0.mlp.gate_proj").format == "int8-convrot");
  CHECK(module(summary, "text.layers.0.mlp.down_proj").format == "int8");
  CHECK(group(summary, "text mlp").dtypes.at("i8") == 3);
}

TEST_CASE("inspect: int8 codes without a scale, and scales without codes, are problems") {
  const Release release;
  release.edit([](std::vector<FileTensor>& tensors) {
    const std::string gate = "model.language_model.layers.0.mlp.gate_proj";
    replace_weight(tensors, kUpProj, {zeros(kUpProj + std::string(".weight"), "I8", {256, 256}, 65536)});
    replace_weight(tensors, gate, {zeros(gate + ".weight_scale", "F32", {256}, 1024)});
  });
  const ReleaseSummary summary = release.inspect();
  CHECK(has(summary.problems, "up_proj\" has int8 codes and no weight_scale"));
  CHECK(has(summary.problems, "gate_proj\" has parts of a quantised weight and no weight"));
}

TEST_CASE("inspect: what reading a quantised weight would find wrong with its header is a problem") {
  const auto problems_of = [](const std::vector<FileTensor>& parts) {
    const Release release;
    release.edit([&](std::vector<FileTensor>& tensors) { replace_weight(tensors, kUpProj, parts); });
    const ReleaseSummary summary = release.inspect();
    CHECK_FALSE(summary.is_complete());
    return summary.problems;
  };
  const std::string name = kUpProj;
  const auto nf4 = nf4_parts(kUpProj, "[256, 256]", 32768);
  for (const char* part : {"absmax", "quant_map", "nested_absmax", "nested_quant_map"}) {
    const auto is_part = [&](const FileTensor& tensor) { return tensor.name == name + ".weight." + part; };
    std::vector<FileTensor> without = nf4, misshapen = nf4, mistyped = nf4;
    std::erase_if(without, is_part);
    CHECK(has(problems_of(without), std::string("up_proj\" has no weight.") + part));
    *std::ranges::find_if(misshapen, is_part) = zeros(name + ".weight." + part, "F32", {3}, 12);
    CHECK(has(problems_of(misshapen), std::string("has a weight.") + part + " of [3] f32"));
    FileTensor& integers = *std::ranges::find_if(mistyped, is_part);
    integers.dtype = integers.dtype == "F32" ? "I32" : "I8";
    CHECK(has(problems_of(mistyped), std::string("has a weight.") + part));
  }
  const auto int8 = int8_parts(kUpProj, R"({"convrot": true})");
  auto both = nf4;
  both.push_back(int8[1]);
  CHECK(has(problems_of(both), "has a tensor weight_scale that its format does not know"));
  CHECK(has(problems_of({int8[0], int8[1]}), "nothing that says whether they are rotated"));
  CHECK(has(problems_of(int8_parts(kUpProj, "{}")), "does not say whether it is rotated"));
  auto two_scales = int8;
  two_scales.push_back(zeros(name + ".scales", "F32", {256}, 1024));
  CHECK(has(problems_of(two_scales), "has both weight_scale and scales"));
  auto scales = int8;
  scales[1] = zeros(name + ".weight_scale", "F32", {255}, 1020);
  CHECK(has(problems_of(scales), "has a weight_scale of [255] f32"));
  scales[1] = zeros(name + ".weight_scale", "I32", {256}, 1024);
  CHECK(has(problems_of(scales), "has a weight_scale of [256] i32"));
  CHECK(has(problems_of({zeros(name + ".weight", "F8_E4M3", {256, 256}, 65536)}), "fp8 codes and no weight_scale"));
  CHECK(has(problems_of({zeros(name + ".weight", "I16", {256, 256}, 131072)}), "is [256, 256] i16, expected bf16"));
  CHECK(has(problems_of({zeros(name + ".weight_packed", "I32", {256, 32}, 32768)}), "is stored as int4-packed"));
}

TEST_CASE("inspect: a table that is quantised is a problem: no Linear is read from it") {
  const Release release;
  release.edit([](std::vector<FileTensor>& tensors) {
    for (FileTensor& tensor : tensors) {
      if (tensor.name != "model.language_model.embed_tokens.weight") continue;
      tensor.dtype = "I8";
      tensor.data.resize(tensor.data.size() / 2);
    }
    tensors.push_back(zeros("model.language_model.embed_tokens.weight_scale", "F32", {640}, 2560));
  });
  CHECK(has(release.inspect().problems, "\"text.embed_tokens\" is stored as int8, expected plain weights"));
}

TEST_CASE("inspect: INT8 weights that config.json describes are complete without a description of their own") {
  const Release release;
  release.edit([](std::vector<FileTensor>& tensors) {
    const auto parts = int8_parts(kUpProj, "");
    replace_weight(tensors, kUpProj, {parts[0], parts[1]});
  });
  std::string config = testing::read_file(release / "config.json");
  config.insert(config.rfind('}'), R"(, "quantization_config": {"quant_method": "int8-convrot"})");
  testing::write_file(release / "config.json", config);
  CHECK(release.inspect().is_complete());
}

TEST_CASE("inspect: a tokenizer that cannot be read, or has more ids than the embedding rows, is a problem") {
  const Release release;
  std::string config = testing::read_file(release / "config.json");
  for (const char* text : {"{bad", "{}", "[]"}) {
    CAPTURE(text);
    const Release broken;
    testing::write_file(broken / "tokenizer.json", text);
    CHECK(has(broken.inspect().problems, "tokenizer.json"));
  }
  config.replace(config.find("\"vocab_size\": 640"), 17, "\"vocab_size\": 500");
  testing::write_file(release / "config.json", config);
  CHECK(has(release.inspect().problems, "config.json's vocab_size is 500"));
}

TEST_CASE("storage_format: other formats are recognised by their parts") {
  std::array<char, 64> bytes{};
  const auto view = [&](DType dtype, std::initializer_list<std::int64_t> shape) {
    return TensorView(bytes.data(), dtype, shape);
  };
  using Shape = std::vector<std::int64_t>;
  const auto check = [](const ModuleParts& parts, const char* name, const Shape& shape) {
    CAPTURE(name);
    const StorageFormat format = recognise_format(parts);
    CHECK(format.name == name);
    CHECK(format.shape == shape);
  };
  check({{"weight", view(DType::kF32, {2, 3})}}, "f32", {2, 3});
  check({{"weight", view(DType::kF16, {2, 3})}, {"bias", view(DType::kF16, {2})}}, "f16", {2, 3});
  check({{"", view(DType::kF32, {5})}}, "f32", {5});
  check({{"weight", view(DType::kF8E4M3, {2, 4})}, {"weight_scale", view(DType::kBF16, {2, 1})}}, "fp8", {2, 4});
  check({{"weight", view(DType::kF8E4M3, {2, 4})}, {"weight_scale_inv", view(DType::kF32, {1, 1})}}, "fp8-block",
        {2, 4});
  check({{"weight_packed", view(DType::kI32, {2, 1})}, {"weight_scale", view(DType::kBF16, {2, 1})}}, "int4-packed",
        {2, 8});
  check({{"weight_packed", view(DType::kU8, {2, 8})}, {"weight_scale", view(DType::kF8E4M3, {2, 1})}}, "nvfp4",
        {2, 16});
  check({{"qweight", view(DType::kI32, {2, 4})}, {"scales", view(DType::kF16, {1, 4})}}, "int4-gptq", {4, 16});
  check({{"qweight", view(DType::kI32, {4, 1})}, {"scales", view(DType::kF16, {1, 8})}}, "int4-awq", {8, 4});
  check({{"weight", view(DType::kU32, {2, 1})}, {"scales", view(DType::kBF16, {2, 1})}}, "mlx-affine", {});
  check({{"weight", view(DType::kU8, {8, 1})}, {"weight.quant_state.bitsandbytes__fp4", view(DType::kU8, {4})}}, "fp4",
        {});
}

TEST_CASE("storage_format: a name splits into module and part") {
  const auto split = [](std::string_view name) {
    const ModulePart part = split_module(name);
    return std::string(part.module) + '|' + std::string(part.part);
  };
  CHECK(split("text.norm.weight") == "text.norm|weight");
  CHECK(split("a.weight_scale") == "a|weight_scale");
  CHECK(split("a.weight.nested_absmax") == "a|weight.nested_absmax");
  CHECK(split("a.weight.quant_state.bitsandbytes__nf4") == "a|weight.quant_state.bitsandbytes__nf4");
  CHECK(split("a.linear_attn.A_log") == "a.linear_attn.A_log|");
  CHECK(split("a.attention.in_proj_weight") == "a.attention.in_proj_weight|");
  CHECK(split("weight") == "weight|");
}

TEST_CASE("collapse_layers: names that differ in their first number become one, in order") {
  CHECK(collapse_layers({"a.2.b", "a.0.b", "a.1.b", "a.5.b", "c", "a.10.x.3"}) ==
        Strings{"a.10.x.3", "a.{0..2,5}.b", "c"});
  CHECK(collapse_layers({"a.00.b", "a.0.b", "a.99999999999999999999.b"}) ==
        Strings{"a.0.b", "a.00.b", "a.99999999999999999999.b"});
  CHECK(collapse_layers({}).empty());
}

TEST_CASE("collapse_layers: ranges that repeat regularly are cut, others are written out") {
  Strings full, rest;
  for (int layer = 0; layer < 64; ++layer) (layer % 4 == 3 ? full : rest).push_back("a." + std::to_string(layer));
  CHECK(collapse_layers(full) == Strings{"a.{3,7,...,63}"});
  CHECK(collapse_layers(rest) == Strings{"a.{0..2,4..6,...,60..62}"});
  full.pop_back();
  full.push_back("a.62");
  CHECK(collapse_layers(full).front().ends_with("51,55,59,62}"));
}

TEST_CASE("to_json: says what the summary says") {
  const Release release;
  testing::write_file(release / "notes.txt", "x");
  const ReleaseSummary summary = release.inspect();
  const Json json = to_json(summary);
  long long number = 0;
  CHECK(json.find("is_complete")->as_bool());
  CHECK(json.find("known_size")->is_null());
  REQUIRE(json.find("weight_bytes")->as_int64(number));
  CHECK(number == static_cast<long long>(summary.weight_bytes));
  CHECK(json.find("modules")->as_array().size() == summary.modules.size());
  CHECK(json.find("unknown_files")->as_array() == Json::Array{"notes.txt"});
  CHECK(json.find("config")->find("hidden_size")->number_text() == "256");
  CHECK(json.find("head_config")->find("width")->number_text() == "64");
  CHECK(parse_json(dump_json(json), "test", ErrorCode::kInternal) == json);
}

TEST_CASE("to_table: columns are aligned, and names out of files cannot move the cursor") {
  const Release release;
  testing::write_file(release / "a\x1B[2J", "x");
  const std::string table = to_table(release.inspect());
  CHECK(table.find('\x1B') == std::string::npos);
  CHECK(table.find("a?[2J") != std::string::npos);
  CHECK(table.find("complete") != std::string::npos);
  const auto column = [&](std::string_view row_start, std::string_view text) {
    const std::size_t row = table.find("\n" + std::string(row_start));
    REQUIRE(row != std::string::npos);
    return table.find(text, row) - row;
  };
  CHECK(column("module ", "stored as") == column("text.layers.{0..2}.linear_attn.in_proj_z ", "bf16"));
}

}  // namespace treble
