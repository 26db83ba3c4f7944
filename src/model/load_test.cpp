#include <doctest/doctest.h>
#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "checkpoint/expected_tensors.h"
#include "checkpoint/testing/release_files.h"
#include "cuda/cuda_planner.h"
#include "model/release_shapes.h"
#include "model/weights.h"
#include "ops/testing/backends.h"
#include "quant/encode_int8.h"
#include "quant/encode_nf4.h"
#include "tensor/bfloat16.h"

namespace treble::testing {
namespace {

FileTensor& find(std::vector<FileTensor>& tensors, std::string_view name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const FileTensor& t) { return t.name == name; });
  REQUIRE(found != tensors.end());
  return *found;
}

std::unique_ptr<Ops> any_ops() {
  return backends().front().make();
}

/// A copy of the micro release, one file of which is edited, opened.
template <typename Edit>
std::string load_error(const char* file, const Edit& edit, const char* release = "micro") {
  const TempFolder folder;
  copy_micro_release(folder.path(), release);
  edit_safetensors(folder / file, edit);
  const std::unique_ptr<Ops> ops = any_ops();
  try {
    load_model(folder.path(), *ops);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kCheckpoint);
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

constexpr const char* kNorm = "model.language_model.layers.1.input_layernorm.weight";

/// Notes what a model asks for.
class RecordingSource final : public WeightSource {
 public:
  TensorView tensor(const std::string& name, std::initializer_list<std::int64_t> shape) override {
    asked[name] = shape;
    return TensorView(&nothing_, DType::kBF16, shape.begin(), static_cast<int>(shape.size()));
  }
  float scalar(const std::string& name) override {
    asked[name] = {};
    return 0;
  }

  bool has(const std::string&) const override { return true; }

  std::map<std::string, std::vector<std::int64_t>> asked;

 private:
  bfloat16 nothing_{};
};

TEST_CASE("build_model: asks for the very tensors that inspect expects") {
  RecordingSource source;
  const std::unique_ptr<Ops> ops = any_ops();
  build_model(read_config(micro_release()), source, *ops);

  std::map<std::string, std::vector<std::int64_t>> expected;
  const auto read = [](const char* name) {
    return parse_json(read_file(micro_release() / name), name, ErrorCode::kCheckpoint);
  };
  for (const auto& tensors :
       {expected_backbone_tensors(read("config.json")), expected_head_tensors(read("joint_head_config.json"))}) {
    for (const ExpectedTensor& tensor : tensors) expected[tensor.name] = tensor.shape;
  }
  CHECK(source.asked == expected);
}

TEST_CASE("load_model: weights are used where the file is mapped") {
  const std::unique_ptr<Ops> ops = any_ops();
  const Model model = load_model(micro_release(), *ops);
  CHECK(model.backbone.layers.size() == 4);
  CHECK(model.storage.size() == 1);  // the mapping, no copies
  CHECK(model.output_embedding.data() != model.backbone.embed_tokens.data());
}

TEST_CASE("load_model: progress goes from nothing to all bytes of the files, and what it throws ends the loading") {
  const std::unique_ptr<Ops> ops = any_ops();
  for (const auto conversion : {WeightConversion::kNone, WeightConversion::kNf4}) {
    std::vector<std::uint64_t> done;
    const Model model = load_model(micro_release(), *ops, conversion, [&](std::uint64_t bytes, std::uint64_t total) {
      CHECK(bytes <= total);
      done.push_back(bytes);
    });
    CHECK(std::ranges::is_sorted(done));
    CHECK(done.front() == 0);
    if (conversion == WeightConversion::kNone) CHECK(done.back() >= model.weight_bytes);
  }
  const auto stop = [](std::uint64_t, std::uint64_t) { throw Error(ErrorCode::kArgument, "test: enough"); };
  CHECK_THROWS_WITH_AS(load_model(micro_release(), *ops, WeightConversion::kNone, stop), "test: enough", Error);
}

TEST_CASE("load_model: a conversion quantises the Linears that releases of that format quantise, and no others") {
  const std::unique_ptr<Ops> ops = any_ops();
  const Model plain = load_model(micro_release(), *ops);
  const auto& from = std::get<DeltaNetWeights>(plain.backbone.layers[0].mixer);
  const auto have_equal_bytes = [](const TensorView& a, const TensorView& b) {
    return a.num_bytes() == b.num_bytes() && std::memcmp(a.data(), b.data(), a.num_bytes()) == 0;
  };
  for (const auto conversion : {WeightConversion::kInt8Convrot, WeightConversion::kInt8}) {
    const Model model = load_model(micro_release(), *ops, conversion);
    const auto& mixer = std::get<DeltaNetWeights>(model.backbone.layers[0].mixer);
    const std::int64_t group = conversion == WeightConversion::kInt8 ? 1 : 256;
    const EncodedLinear encoded = encode_int8(from.in_proj_qkv.weight, group, "");
    const LinearWeight& expected = encoded.linear;
    CHECK(mixer.in_proj_qkv.format == WeightFormat::kInt8);
    CHECK(mixer.in_proj_qkv.int8.rotation_group == group);
    CHECK(have_equal_bytes(mixer.in_proj_qkv.int8.row_scale, expected.int8.row_scale));
    CHECK(have_equal_bytes(mixer.in_proj_qkv.weight, expected.weight));
    CHECK(mixer.in_proj_a.format == WeightFormat::kDense);
    CHECK(have_equal_bytes(mixer.in_proj_a.weight, from.in_proj_a.weight));
    CHECK(model.backbone.layers[3].mlp.down_proj.format == WeightFormat::kInt8);
    CHECK(model.head.memory_projection.format == WeightFormat::kDense);
    CHECK(model.weight_bytes < plain.weight_bytes);
  }
  const Model model = load_model(micro_release(), *ops, WeightConversion::kNf4);
  const auto& mixer = std::get<DeltaNetWeights>(model.backbone.layers[0].mixer);
  CHECK(mixer.in_proj_a.format == WeightFormat::kNf4);
  const EncodedLinear encoded = encode_nf4(from.in_proj_z.weight, {}, "");
  CHECK(have_equal_bytes(mixer.in_proj_z.weight, encoded.linear.weight));
  CHECK(model.head.memory_projection.format == WeightFormat::kDense);
  CHECK(model.weight_bytes < plain.weight_bytes);
}

/// What a Linear of a model is and takes.
struct PlacedLinear {
  WeightFormat format;
  std::size_t num_bytes;
  std::int64_t rotation_group;

  bool operator==(const PlacedLinear&) const = default;
};
std::vector<PlacedLinear> placed_linears(const Model& model) {
  std::vector<PlacedLinear> all;
  const auto add = [&](LinearWeight linear) {
    std::size_t num_bytes = 0;
    for (const TensorView* view : linear.tensors()) num_bytes += view->num_bytes();
    all.push_back({linear.format, num_bytes, linear.int8.rotation_group});
  };
  for (const LayerWeights& layer : model.backbone.layers) {
    for (const LinearWeight& linear : {layer.mlp.gate_proj, layer.mlp.up_proj, layer.mlp.down_proj}) add(linear);
    if (const auto* attention = std::get_if<AttentionWeights>(&layer.mixer))
      for (const LinearWeight& linear : {attention->q_proj, attention->k_proj, attention->v_proj, attention->o_proj})
        add(linear);
    if (const auto* delta = std::get_if<DeltaNetWeights>(&layer.mixer))
      for (const LinearWeight& linear : {delta->in_proj_qkv, delta->in_proj_z, delta->in_proj_b, delta->out_proj})
        add(linear);
  }
  return all;
}

TEST_CASE("release_shapes: formats and sizes of every Linear are those of the loaded model") {
  const std::filesystem::path data(TREBLE_TEST_DATA);
  for (const auto& [release, conversion] : {std::pair<const char*, WeightConversion>{"micro", WeightConversion::kNone},
                                            {"micro", WeightConversion::kInt8Convrot},
                                            {"micro", WeightConversion::kInt8},
                                            {"micro", WeightConversion::kNf4},
                                            {"micro-int8", WeightConversion::kNone},
                                            {"micro-nf4", WeightConversion::kNone}}) {
    CAPTURE(release);
    const std::filesystem::path folder = data / release / "release";
    const std::unique_ptr<Ops> ops = any_ops();
    const Model loaded = load_model(folder, *ops, conversion);
    ReleaseShapes shapes(folder, conversion);
    CHECK(placed_linears(build_model(loaded.config, shapes, *ops)) == placed_linears(loaded));
  }
}

TEST_CASE("load_model: a release that is quantised already is not quantised again") {
  const std::unique_ptr<Ops> ops = any_ops();
  const TempFolder folder;
  copy_micro_release(folder.path(), "micro-nf4");
  try {
    load_model(folder.path(), *ops, WeightConversion::kInt8Convrot);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kArgument);
    CHECK(contains(error.what(), "text.layers.0."));
    CHECK(contains(error.what(), "int8-convrot"));
  }
}

TEST_CASE("load_model: a release without a vision tower reads text, one with half a tower is refused") {
  const auto load_without = [](const std::string& prefix) {
    const TempFolder folder;
    copy_micro_release(folder.path());
    edit_safetensors(folder / "model.safetensors", [&](auto& tensors) {
      std::erase_if(tensors, [&](const FileTensor& t) { return t.name.starts_with(prefix); });
    });
    const std::unique_ptr<Ops> ops = any_ops();
    return load_model(folder.path(), *ops).vision.has_value();
  };
  CHECK(load_without("no such tensor"));
  CHECK_FALSE(load_without("model.visual."));
  CHECK_THROWS_WITH_AS(load_without("model.visual.blocks.1.norm2."), doctest::Contains("visual.blocks.1.norm2.weight"),
                       Error);
}

TEST_CASE("load_model: a tower that is to be loaded later is looked at, and is the same when it is") {
  const std::unique_ptr<Ops> ops = any_ops();
  const Model whole = load_model(micro_release(), *ops);
  Model model = load_model(micro_release(), *ops, WeightConversion::kNone, {}, TowerLoading::kLater);
  CHECK_FALSE(model.vision);
  CHECK(model.weight_bytes < whole.weight_bytes);
  load_tower(micro_release(), *ops, WeightConversion::kNone, model);
  REQUIRE(model.vision);
  CHECK(model.weight_bytes == whole.weight_bytes);
  CHECK(model.config.vision->depth == whole.config.vision->depth);

  const TempFolder folder;
  copy_micro_release(folder.path());
  edit_safetensors(folder / "model.safetensors", [&](auto& tensors) {
    std::erase_if(tensors, [&](const FileTensor& t) { return t.name.starts_with("model.visual.blocks.1.norm2."); });
  });
  CHECK_THROWS_WITH_AS(load_model(folder.path(), *ops, WeightConversion::kNone, {}, TowerLoading::kLater),
                       doctest::Contains("visual.blocks.1.norm2.weight"), Error);
}

TEST_CASE("load_model: Linears of the vision tower may be NF4, its convolution is plain") {
  const std::unique_ptr<Ops> ops = any_ops();
  const Model model = load_model(micro_release(), *ops, WeightConversion::kNf4);
  REQUIRE(model.vision);
  CHECK(model.vision->patch_embed.format == WeightFormat::kDense);
  CHECK(model.vision->blocks[1].qkv.format == WeightFormat::kNf4);
  CHECK(model.vision->merger_fc2.format == WeightFormat::kNf4);
  CHECK(model.vision->merger_fc2.bias);
}

TEST_CASE("load_model: 8-bit codes where the vision tower has no Linear are refused, not read as numbers") {
  for (const std::string name : {"model.visual.patch_embed.proj", "model.visual.pos_embed"}) {
    const std::string error = load_error("model.safetensors", [&](auto& tensors) {
      FileTensor& weight = find(tensors, name + ".weight");
      weight.dtype = "I8";
      weight.data.resize(weight.data.size() / 2);
      tensors.push_back(
          zeros(name + ".weight_scale", "F32", {weight.shape[0], 1}, 4 * static_cast<std::size_t>(weight.shape[0])));
    });
    CHECK(contains(error, name + ".weight"));
    CHECK(contains(error, "i8; this engine reads bf16"));
  }
}

TEST_CASE("load_model: a missing tensor is named with the shape that is expected") {
  const std::string error = load_error(
      "model.safetensors", [](auto& tensors) { find(tensors, kNorm).name = "model.language_model.layers.1.other"; });
  CHECK(contains(error, "text.layers.1.input_layernorm.weight"));
  CHECK(contains(error, "[256]"));
}

TEST_CASE("load_model: a misshapen tensor is named with both shapes") {
  const std::string error = load_error("model.safetensors", [](auto& tensors) {
    find(tensors, kNorm).shape = {2, 128};
  });
  CHECK(contains(error, kNorm));
  CHECK(contains(error, "[2, 128]"));
  CHECK(contains(error, "[256]"));
}

TEST_CASE("load_model: an integer where a weight should be is named with its type") {
  const std::string error = load_error("model.safetensors", [](auto& tensors) { find(tensors, kNorm).dtype = "I16"; });
  CHECK(contains(error, kNorm));
  CHECK(contains(error, "i16"));
}

TEST_CASE("load_model: a tensor that the joint head does not know is refused") {
  const std::string error = load_error("joint_head.safetensors",
                                       [](auto& tensors) { tensors.push_back(zeros("extra.weight", "BF16", {4}, 8)); });
  CHECK(contains(error, "joint_head.safetensors"));
  CHECK(contains(error, "extra.weight"));
}

constexpr const char* kGateProj = "model.language_model.layers.0.mlp.gate_proj";

TEST_CASE("load_model: what lies beside a plain weight and is not read is refused, whatever it is") {
  const FileTensor leftovers[] = {
      zeros(".bias", "BF16", {256}, 512),          zeros(".weight_scale", "F32", {256, 1}, 1024),
      zeros(".comfy_quant", "U8", {2}, 2),         zeros(".weight.absmax", "U8", {1024}, 1024),
      zeros(".weight.quant_map", "F32", {16}, 64), zeros(".lora_A.weight", "BF16", {8, 256}, 4096)};
  for (const FileTensor& leftover : leftovers) {
    CAPTURE(leftover.name);
    const std::string error = load_error("model.safetensors", [&](auto& tensors) {
      tensors.push_back(leftover);
      tensors.back().name = kGateProj + leftover.name;
    });
    CHECK(contains(error, "model.safetensors"));
    CHECK(contains(error, kGateProj + leftover.name));
    CHECK(contains(error, "cannot be left out safely"));
  }
  const std::string error = load_error(
      "model.safetensors",
      [](auto& tensors) {
        FileTensor& weight = find(tensors, std::string(kGateProj) + ".weight");
        weight.dtype = "BF16";
        weight.data.resize(2 * weight.data.size());
      },
      "micro-int8");
  CHECK(contains(error, std::string(kGateProj) + "."));
  CHECK(contains(error, "cannot be left out safely"));
}

TEST_CASE("load_model: a layer beyond those of config.json is refused, and so is a tensor of no known name") {
  for (const char* name : {"model.language_model.layers.4.input_layernorm.weight", "score.weight"}) {
    const std::string error =
        load_error("model.safetensors", [&](auto& tensors) { tensors.push_back(zeros(name, "BF16", {256}, 512)); });
    CHECK(contains(error, name));
  }
}

TEST_CASE("load_model: every Linear is held against its claim of how it is rotated") {
  const std::string error = load_error(
      "model.safetensors",
      [](auto& tensors) {
        std::string& codes = find(tensors, "model.language_model.layers.2.mlp.up_proj.weight").data;
        for (std::size_t i = 0; i < codes.size(); ++i)
          codes[i] = static_cast<char>(i % 31 == 0 ? 100 : static_cast<int>(i * 7 % 5) - 2);
      },
      "micro-int8");
  CHECK(contains(error, "text.layers.2.mlp.up_proj"));
  CHECK(contains(error, "look not rotated"));
}

TEST_CASE("load_model: a scale that is not a number is refused") {
  for (const char* name : {"prior_logit_scale", "joint_logit_scale", "residual_gate"}) {
    const std::string error = load_error("joint_head.safetensors", [&](auto& tensors) {
      const std::uint16_t nan = 0x7fc0;
      std::memcpy(find(tensors, name).data.data(), &nan, sizeof nan);
    });
    CHECK(contains(error, name));
    CHECK(contains(error, "finite"));
  }
}

TEST_CASE("load_model: tensors stored in f32 and f16 are rounded to bf16, nearest even") {
  const TempFolder folder;
  copy_micro_release(folder.path());
  edit_safetensors(folder / "model.safetensors", [](auto& tensors) {
    FileTensor& A_log = find(tensors, "model.language_model.layers.0.linear_attn.A_log");
    A_log.dtype = "F32";
    A_log.data.clear();
    for (int i = 0; i < 6; ++i) {
      const auto bits =
          static_cast<std::uint32_t>(0x3f808000u + static_cast<std::uint32_t>(i) * 0x10000u);  // ties: round to even
      A_log.data.append(reinterpret_cast<const char*>(&bits), sizeof bits);
    }
    FileTensor& dt_bias = find(tensors, "model.language_model.layers.0.linear_attn.dt_bias");
    dt_bias.dtype = "F16";
    for (std::size_t i = 0; i < 6; ++i) {
      const std::uint16_t bits = 0xbc00;  // -1
      std::memcpy(dt_bias.data.data() + 2 * i, &bits, sizeof bits);
    }
  });
  const std::unique_ptr<Ops> ops = any_ops();
  const Model model = load_model(folder.path(), *ops);
  const auto& weights = std::get<DeltaNetWeights>(model.backbone.layers[0].mixer);
  const auto* A_log = weights.A_log.as<bfloat16>();
  CHECK(A_log[0].bits == 0x3f80);
  CHECK(A_log[1].bits == 0x3f82);
  CHECK(to_float(weights.dt_bias.as<bfloat16>()[5]) == -1.0f);
}

TEST_CASE("load_model: weights that begin at an odd address are read all the same") {
  const TempFolder folder;
  copy_micro_release(folder.path());
  const std::string bytes = read_file(folder / "joint_head.safetensors");
  std::size_t header_bytes = 0;
  for (int i = 7; i >= 0; --i)
    header_bytes = header_bytes << 8 | static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
  write_file(folder / "joint_head.safetensors",
             safetensors_bytes(bytes.substr(8, header_bytes) + " ", bytes.substr(8 + header_bytes)));
  const std::unique_ptr<Ops> ops = any_ops();
  const Model shifted = load_model(folder.path(), *ops), plain = load_model(micro_release(), *ops);
  const TensorView a = shifted.head.type_embedding, b = plain.head.type_embedding;
  CHECK(std::memcmp(a.data(), b.data(), a.num_bytes()) == 0);
}

TEST_CASE("load_model: tied embeddings stand in for lm_head, which may then be absent") {
  const TempFolder folder;
  copy_micro_release(folder.path());
  std::string config = read_file(folder / "config.json");
  const std::size_t at = config.rfind("\"tie_word_embeddings\": false");
  config.replace(at, 28, "\"tie_word_embeddings\": true ");
  write_file(folder / "config.json", config);
  edit_safetensors(folder / "model.safetensors", [](auto& tensors) {
    std::erase_if(tensors, [](const FileTensor& t) { return t.name == "lm_head.weight"; });
  });
  const std::unique_ptr<Ops> ops = any_ops();
  const Model model = load_model(folder.path(), *ops);
  CHECK(model.output_embedding.data() == model.backbone.embed_tokens.data());
}

TEST_CASE("load_model: untied embeddings without lm_head are an error") {
  const std::string error = load_error("model.safetensors", [](auto& tensors) {
    std::erase_if(tensors, [](const FileTensor& t) { return t.name == "lm_head.weight"; });
  });
  CHECK(contains(error, "lm_head.weight"));
}

TEST_CASE("load_model: a sharded release loads like a single file") {
  const TempFolder folder;
  copy_micro_release(folder.path());
  split_into_shards(folder.path());
  const std::unique_ptr<Ops> ops = any_ops();
  const Model sharded = load_model(folder.path(), *ops), single = load_model(micro_release(), *ops);
  CHECK(sharded.weight_bytes == single.weight_bytes);
  CHECK(std::memcmp(sharded.output_embedding.data(), single.output_embedding.data(),
                    single.output_embedding.num_bytes()) == 0);
}

constexpr const char* kUpProj = "model.language_model.layers.1.mlp.up_proj";

TEST_CASE("load_model: how a Linear is stored is decided for each alone, plain beside NF4") {
  const TempFolder folder;
  copy_micro_release(folder.path(), "micro-nf4");
  std::vector<FileTensor> plain = read_safetensors(micro_release() / "model.safetensors");
  edit_safetensors(folder / "model.safetensors", [&](auto& tensors) {
    std::erase_if(tensors, [](const FileTensor& t) { return t.name.starts_with(kUpProj); });
    tensors.push_back(find(plain, std::string(kUpProj) + ".weight"));
  });
  const std::unique_ptr<Ops> ops = any_ops();
  const Model model = load_model(folder.path(), *ops);
  const MlpWeights& mlp = model.backbone.layers[1].mlp;
  CHECK(mlp.up_proj.format == WeightFormat::kDense);
  CHECK(mlp.gate_proj.format == WeightFormat::kNf4);
  CHECK(mlp.gate_proj.out_features() == 256);
}

TEST_CASE("load_model: an NF4 weight of another shape than the configuration implies is named with both") {
  const std::string error = load_error(
      "model.safetensors",
      [](auto& tensors) {
        std::string& state = find(tensors, std::string(kUpProj) + ".weight.quant_state.bitsandbytes__nf4").data;
        state.replace(state.find("[256, 256]"), 10, "[128, 512]");
      },
      "micro-nf4");
  CHECK(contains(error, "text.layers.1.mlp.up_proj"));
  CHECK(contains(error, "[128, 512]"));
  CHECK(contains(error, "[256, 256]"));
}

TEST_CASE("load_model: a Linear stored in fp8 is read as bf16 beside the others") {
  const TempFolder folder;
  copy_micro_release(folder.path());
  edit_safetensors(folder / "model.safetensors", [](auto& tensors) {
    FileTensor& weight = find(tensors, std::string(kUpProj) + ".weight");
    weight.dtype = "F8_E4M3";
    weight.data.assign(256 * 256, '\x38');  // ones
    FileTensor scale = zeros(std::string(kUpProj) + ".weight_scale", "BF16", {256, 1}, 512);
    for (std::size_t i = 1; i < 512; i += 2) scale.data[i] = '\x40';  // twos
    tensors.push_back(std::move(scale));
  });
  const std::unique_ptr<Ops> ops = any_ops();
  const Model model = load_model(folder.path(), *ops);
  const LinearWeight& up = model.backbone.layers[1].mlp.up_proj;
  CHECK(up.format == WeightFormat::kDense);
  CHECK(to_float(up.weight.as<bfloat16>()[256 * 256 - 1]) == 2.0f);
}

TEST_CASE("load_model: a format that is not read is refused with its name") {
  const std::string error = load_error("model.safetensors", [](auto& tensors) {
    find(tensors, std::string(kUpProj) + ".weight") =
        zeros(std::string(kUpProj) + ".weight_packed", "I32", {256, 32}, 256 * 128);
    tensors.push_back(zeros(std::string(kUpProj) + ".weight_scale", "BF16", {256, 2}, 1024));
  });
  CHECK(contains(error, "text.layers.1.mlp.up_proj"));
  CHECK(contains(error, "int4-packed"));
}

TEST_CASE("load_model: GPTQ and AWQ releases are refused as what they are") {
  const auto error_of = [](std::vector<std::int64_t> codes, std::vector<std::int64_t> scales) {
    return load_error("model.safetensors", [&](auto& tensors) {
      const auto bytes = [](const std::vector<std::int64_t>& shape, std::size_t size) {
        return static_cast<std::size_t>(shape[0] * shape[1]) * size;
      };
      std::erase_if(tensors, [](const FileTensor& t) { return t.name == std::string(kUpProj) + ".weight"; });
      tensors.push_back(zeros(std::string(kUpProj) + ".qweight", "I32", codes, bytes(codes, 4)));
      tensors.push_back(zeros(std::string(kUpProj) + ".scales", "F16", scales, bytes(scales, 2)));
    });
  };
  const std::string gptq = error_of({32, 256}, {2, 256}), awq = error_of({256, 32}, {2, 256});
  CHECK(contains(gptq, "text.layers.1.mlp.up_proj\" is stored as int4-gptq (qweight is [32, 256] i32, scales is"));
  CHECK(contains(awq, "is stored as int4-awq (qweight is [256, 32] i32"));
}

/// Puts a quantization_config into a copied release.
void add_quantization_config(const TempFolder& folder, std::string_view quantization_config) {
  std::string config = read_file(folder / "config.json");
  config.insert(config.rfind('}'), fmt::format(R"(, "quantization_config": {})", quantization_config));
  write_file(folder / "config.json", config);
}

TEST_CASE("load_model: int-quantized weights of compressed-tensors are read as bf16, unless they are transformed") {
  const TempFolder folder;
  copy_micro_release(folder.path());
  edit_safetensors(folder / "model.safetensors", [](auto& tensors) {
    FileTensor& weight = find(tensors, std::string(kUpProj) + ".weight");
    weight.dtype = "I8";
    weight.data.assign(256 * 256, '\x03');
    FileTensor scale = zeros(std::string(kUpProj) + ".weight_scale", "BF16", {256, 1}, 512);
    for (std::size_t i = 1; i < 512; i += 2) scale.data[i] = '\x40';  // twos
    tensors.push_back(std::move(scale));
  });
  const std::unique_ptr<Ops> ops = any_ops();
  CHECK_THROWS_WITH_AS(load_model(folder.path(), *ops), doctest::Contains("nothing that says whether"), Error);
  add_quantization_config(folder, R"({"quant_method": "compressed-tensors", "format": "int-quantized"})");
  const Model model = load_model(folder.path(), *ops);
  const LinearWeight& up = model.backbone.layers[1].mlp.up_proj;
  CHECK(up.format == WeightFormat::kDense);
  CHECK(to_float(up.weight.as<bfloat16>()[256 * 256 - 1]) == 6.0f);

  add_quantization_config(folder, R"({"quant_method": "compressed-tensors", "transform_config": {"R1": {}}})");
  CHECK_THROWS_WITH_AS(load_model(folder.path(), *ops), doctest::Contains("transform_config"), Error);
}

constexpr const char* kMlp = "model.language_model.layers.1.mlp.";

/// Puts the gate and up projection of one layer into one module, gate first.
void fuse_gate_up(std::vector<FileTensor>& tensors) {
  for (const char* part : {"weight", "weight_scale", "bias", "comfy_quant"}) {
    FileTensor whole = find(tensors, std::string(kMlp) + "gate_proj." + part);
    const FileTensor& up = find(tensors, std::string(kMlp) + "up_proj." + part);
    whole.name = std::string(kMlp) + "gate_up_proj." + part;
    if (std::string_view(part) != "comfy_quant") {
      whole.data += up.data;
      whole.shape[0] += up.shape[0];
    }
    tensors.push_back(std::move(whole));
  }
  std::erase_if(tensors, [](const FileTensor& t) {
    return t.name.starts_with(std::string(kMlp) + "gate_proj.") || t.name.starts_with(std::string(kMlp) + "up_proj.");
  });
}

bool have_equal_bytes(const TensorView& a, const TensorView& b) {
  return a.num_bytes() == b.num_bytes() && std::memcmp(a.data(), b.data(), a.num_bytes()) == 0;
}

TEST_CASE("load_model: projections stored as one are the rows that they are made of") {
  const TempFolder folder, plain_folder;
  copy_micro_release(folder.path(), "micro-int8");
  copy_micro_release(plain_folder.path(), "micro-int8");
  edit_safetensors(folder / "model.safetensors", fuse_gate_up);
  const std::unique_ptr<Ops> ops = any_ops();
  const Model fused = load_model(folder.path(), *ops), plain = load_model(plain_folder.path(), *ops);
  const MlpWeights &a = fused.backbone.layers[1].mlp, &b = plain.backbone.layers[1].mlp;
  for (const auto& [from_whole, alone] : {std::pair(&a.gate_proj, &b.gate_proj), {&a.up_proj, &b.up_proj}}) {
    CHECK(have_equal_bytes(from_whole->weight, alone->weight));
    CHECK(have_equal_bytes(from_whole->int8.row_scale, alone->int8.row_scale));
    CHECK(have_equal_bytes(from_whole->bias, alone->bias));
  }
}

/// Copies weights, as a GPU does, and then overwrites what was freed on the way.
class CopyingOps final : public cuda::CudaPlanner {
 public:
  CopyingOps() : CudaPlanner({}) {}

  TensorView place_weight(const HostWeight& host) override {
    const std::size_t num_bytes = host.view.num_bytes();
    for (std::size_t size = num_bytes; size <= 2 * num_bytes; size += num_bytes) overwrite_freed(size);
    const auto* from = static_cast<const std::byte*>(host.view.data());
    copies_.emplace_back(from, from + num_bytes);
    return host.view.at(copies_.back().data());
  }

 private:
  static void overwrite_freed(std::size_t num_bytes) {
    std::vector<std::vector<std::byte>> blocks(4);
    for (std::vector<std::byte>& block : blocks) block.assign(num_bytes, std::byte{0xff});
  }

  std::vector<std::vector<std::byte>> copies_;
};

TEST_CASE("load_model: a bias that fused projections share is kept until every part has been copied") {
  const TempFolder folder;
  copy_micro_release(folder.path());
  const std::string whole = std::string(kMlp) + "gate_up_proj.";
  edit_safetensors(folder / "model.safetensors", [&](auto& tensors) {
    std::erase_if(tensors, [](const FileTensor& t) {
      return t.name.starts_with(std::string(kMlp) + "gate_proj.") || t.name.starts_with(std::string(kMlp) + "up_proj.");
    });
    FileTensor weight = zeros(whole + "weight", "F8_E4M3", {512, 256}, 512 * 256);
    FileTensor scale = zeros(whole + "weight_scale", "F32", {1}, 4), bias = zeros(whole + "bias", "F32", {512}, 2048);
    const float one = 1, quarter = 0.25f;
    std::memcpy(scale.data.data(), &one, sizeof(one));
    for (std::size_t i = 0; i < 512; ++i) std::memcpy(bias.data.data() + 4 * i, &quarter, sizeof(quarter));
    for (FileTensor* tensor : {&weight, &scale, &bias}) tensors.push_back(std::move(*tensor));
  });
  CopyingOps ops;
  const Model model = load_model(folder.path(), ops);
  const MlpWeights& mlp = model.backbone.layers[1].mlp;
  for (const LinearWeight* part : {&mlp.gate_proj, &mlp.up_proj}) {
    REQUIRE(part->bias);
    for (std::int64_t i = 0; i < 256; ++i) CHECK(to_float(part->bias.as<bfloat16>()[i]) == 0.25f);
  }
}

TEST_CASE("load_model: what parts of a fused projection share is copied once, so that they read one form of an input") {
  const TempFolder folder;
  copy_micro_release(folder.path(), "micro-int8");
  edit_safetensors(folder / "model.safetensors", [](auto& tensors) {
    fuse_gate_up(tensors);
    FileTensor factor = zeros(std::string(kMlp) + "gate_up_proj.pre_quant_scale", "F32", {256}, 1024);
    const float two = 2;
    for (std::size_t i = 0; i < 256; ++i) std::memcpy(factor.data.data() + 4 * i, &two, sizeof(two));
    tensors.push_back(std::move(factor));
  });
  CopyingOps ops;
  const Model model = load_model(folder.path(), ops);
  const MlpWeights& mlp = model.backbone.layers[1].mlp;
  REQUIRE(mlp.gate_proj.int8.input_factor);
  CHECK(mlp.gate_proj.int8.input_factor.data() == mlp.up_proj.int8.input_factor.data());
  ReleaseShapes shapes(folder.path());
  cuda::CudaPlanner planner({});
  const Model planned = build_model(model.config, shapes, planner);
  const MlpWeights& planned_mlp = planned.backbone.layers[1].mlp;
  CHECK(planned_mlp.gate_proj.int8.input_factor.data() == planned_mlp.up_proj.int8.input_factor.data());
}

/// Lays rows of a fused tensor in turns: gate, up, gate, up.
void interleave(FileTensor& tensor) {
  const std::size_t num_rows = static_cast<std::size_t>(tensor.shape[0]) / 2;
  const std::size_t row_bytes = tensor.data.size() / (2 * num_rows);
  std::string data;
  for (std::size_t i = 0; i < 2 * num_rows; ++i)
    data += tensor.data.substr((i % 2 * num_rows + i / 2) * row_bytes, row_bytes);
  tensor.data = data;
  tensor.shape[0] /= 2;
  tensor.shape.insert(tensor.shape.begin() + 1, 2);
}

TEST_CASE("load_model: gate and up projections whose rows lie in turns are the same two projections") {
  const TempFolder folder, plain_folder;
  copy_micro_release(folder.path(), "micro-int8");
  copy_micro_release(plain_folder.path(), "micro-int8");
  edit_safetensors(folder / "model.safetensors", [](auto& tensors) {
    fuse_gate_up(tensors);
    for (const char* part : {"weight", "weight_scale", "bias"})
      interleave(find(tensors, std::string(kMlp) + "gate_up_proj." + part));
  });
  const std::unique_ptr<Ops> ops = any_ops();
  const Model paired = load_model(folder.path(), *ops), plain = load_model(plain_folder.path(), *ops);
  const MlpWeights &a = paired.backbone.layers[1].mlp, &b = plain.backbone.layers[1].mlp;
  for (const auto& [from_pairs, alone] : {std::pair(&a.gate_proj, &b.gate_proj), {&a.up_proj, &b.up_proj}}) {
    CHECK(have_equal_bytes(from_pairs->weight, alone->weight));
    CHECK(have_equal_bytes(from_pairs->int8.row_scale, alone->int8.row_scale));
    CHECK(have_equal_bytes(from_pairs->bias, alone->bias));
  }
}

TEST_CASE("load_model: rows of a fused projection that belong to none are an error") {
  const std::string error = load_error(
      "model.safetensors",
      [](auto& tensors) {
        fuse_gate_up(tensors);
        const std::string whole = std::string(kMlp) + "gate_up_proj.";
        for (const auto& [part, bytes] :
             {std::pair<const char*, std::size_t>{"weight", 256}, {"weight_scale", 4}, {"bias", 2}}) {
          FileTensor& tensor = find(tensors, whole + part);
          tensor.data += tensor.data.substr(0, bytes);
          ++tensor.shape[0];
        }
      },
      "micro-int8");
  CHECK(contains(error, "gate_up_proj"));
  CHECK(contains(error, "1 rows more"));
}

TEST_CASE("load_model: without comfy_quant the file's header or config.json says how INT8 codes are rotated") {
  const auto load = [](const char* quantization_config) {
    const TempFolder folder;
    copy_micro_release(folder.path(), "micro-int8");
    edit_safetensors(folder / "model.safetensors", [](auto& tensors) {
      std::erase_if(tensors, [](const FileTensor& t) { return t.name.ends_with(".comfy_quant"); });
    });
    std::string config = read_file(folder / "config.json");
    config.insert(config.rfind('}'), quantization_config);
    write_file(folder / "config.json", config);
    const std::unique_ptr<Ops> ops = any_ops();
    return load_model(folder.path(), *ops).backbone.layers[0].mlp.up_proj.int8.rotation_group;
  };
  CHECK(load(R"(, "quantization_config": {"quant_method": "int8", "convrot": true, "convrot_groupsize": 64})") == 64);
  CHECK(load(R"(, "quantization_config": {"quant_method": "int8-convrot"})") == 256);
  CHECK(load(R"(, "quantization_config": {"quant_method": "compressed-tensors", "convrot": true})") == 256);
  CHECK_THROWS_WITH_AS(load(""), doctest::Contains("comfy_quant"), Error);
}

constexpr const char* kProjection = "model.language_model.layers.0.linear_attn.in_proj_qkv.weight";

TEST_CASE("load_model: INT8 codes that were plainly not rotated as the file says are refused") {
  const std::string error = load_error(
      "model.safetensors",
      [](auto& tensors) {
        std::string& codes = find(tensors, kProjection).data;
        for (std::size_t i = 0; i < codes.size(); ++i)  // a few large columns among small ones
          codes[i] = static_cast<char>(i % 31 == 0 ? 100 : static_cast<int>(i * 7 % 5) - 2);
      },
      "micro-int8");
  CHECK(contains(error, "text.layers.0.linear_attn.in_proj_qkv"));
  CHECK(contains(error, "look not rotated"));
  CHECK(contains(error, "groups of 256"));
}

}  // namespace
}  // namespace treble::testing
