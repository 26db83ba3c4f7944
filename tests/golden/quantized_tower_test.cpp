// Vision towers whose Linears are quantised in the release's files. Published INT8 releases keep the tower in bf16, but
// how a Linear is stored is decided for each alone, so others may come.

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/testing/release_files.h"
#include "compare.h"
#include "quant/encode_int8.h"
#include "quant/rotation.h"
#include "quantize/quantize.h"

namespace treble::testing {
namespace {

std::string bytes_of(const TensorView& view) {
  return {static_cast<const char*>(view.data()), view.num_bytes()};
}

bool is_tower_linear(const FileTensor& tensor) {
  return tensor.name.starts_with("model.visual.") && tensor.name.ends_with(".weight") && tensor.shape.size() == 2 &&
         tensor.name.find("pos_embed") == std::string::npos;
}

/// Replaces every Linear of the tower by INT8 ConvRot tensors, in the largest group up to 256 that divides its inputs.
void make_tower_int8(std::vector<FileTensor>& tensors) {
  std::vector<FileTensor> added;
  for (FileTensor& tensor : tensors) {
    if (!is_tower_linear(tensor)) continue;
    const std::int64_t out_features = tensor.shape[0], in_features = tensor.shape[1];
    std::int64_t group = kUsualRotationGroup;
    while (!is_rotation_group(group, in_features)) group /= 4;
    const TensorView plain(tensor.data.data(), DType::kBF16, {out_features, in_features});
    const EncodedLinear encoded = encode_int8(plain, group, tensor.name);
    const std::string module = tensor.name.substr(0, tensor.name.rfind('.'));
    const std::string description =
        R"({"format": "int8_tensorwise", "convrot": true, "convrot_groupsize": )" + std::to_string(group) + "}";
    added.push_back({module + ".weight_scale", "F32", {out_features, 1}, bytes_of(encoded.linear.int8.row_scale)});
    added.push_back({module + ".comfy_quant", "U8", {static_cast<std::int64_t>(description.size())}, description});
    tensor.dtype = "I8";
    tensor.data = bytes_of(encoded.linear.weight);
  }
  REQUIRE(added.size() == 2 * (2 * 4 + 2));  // two blocks of four Linears, and the merger's two
  tensors.insert(tensors.end(), added.begin(), added.end());
}

/// The tower's features of a request with an image and clips, [M, h] as f32.
std::vector<float> features_of(const Model& model, Ops& ops) {
  const Fixture fixture;
  const EncodedRecord record = encode(fixture.find("image_and_videos"), Tokenizer(fixture.release()));
  const PackedBatch batch = pack_batch(std::span(&record, 1), model.config.text.vocab_size);
  Workspace workspace(ops.memory());
  const Workspace::Scope scope(workspace);
  const TensorView features = run_vision(model, batch.media, ops, workspace);
  std::vector<float> values(static_cast<std::size_t>(features.num_elements()));
  REQUIRE(features.dtype() == DType::kF32);
  ops.download(features, values.data());
  return values;
}

double relative_error(const std::vector<float>& got, const std::vector<float>& expected) {
  REQUIRE(got.size() == expected.size());
  double error = 0, size = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    error += std::pow(static_cast<double>(got[i]) - static_cast<double>(expected[i]), 2);
    size += std::pow(static_cast<double>(expected[i]), 2);
  }
  return std::sqrt(error / size);
}

TEST_CASE("golden: a tower of INT8 ConvRot Linears gives the plain tower's features but for the rounding to 8 bits") {
  const TempFolder folder;
  copy_micro_release(folder.path());
  edit_safetensors(folder / "model.safetensors", make_tower_int8);
  const std::unique_ptr<Ops> ops = make_ops("cpu", Precision::kF32);
  const Model plain = load_model(micro_release(), *ops), model = load_model(folder.path(), *ops);
  REQUIRE(model.vision);
  for (const VisionBlockWeights& block : model.vision->blocks) {
    for (const LinearWeight* linear : {&block.qkv, &block.proj, &block.fc1, &block.fc2})
      CHECK(linear->format == WeightFormat::kInt8);
  }
  CHECK(model.vision->merger_fc1.format == WeightFormat::kInt8);
  CHECK(model.vision->merger_fc2.format == WeightFormat::kInt8);
  CHECK(model.vision->patch_embed.format == WeightFormat::kDense);
  // The largest of some hundred rotated, so nearly Gaussian, numbers is about 3 deviations: a step is 3 / 127 of one
  // and its rounding 3 / 127 / sqrt(12) = 0.7 % of a weight or an input, 1 % of a product of both. Ten Linears lie in
  // turn on the way, some of them beside a residual: at most sqrt(10) * 1 % in all.
  CHECK(relative_error(features_of(model, *ops), features_of(plain, *ops)) < 0.032);
}

TEST_CASE("golden: a tower of NF4 Linears gives the same features from a file as quantised while it is loaded") {
  const TempFolder folder;
  quantize_release({.release = micro_release(), .out = folder / "nf4", .format = QuantizeFormat::kNf4});
  const std::unique_ptr<Ops> ops = make_ops("cpu", Precision::kF32);
  const Model converted = load_model(micro_release(), *ops, WeightConversion::kNf4);
  const Model stored = load_model(folder / "nf4", *ops);
  REQUIRE(stored.vision);
  CHECK(stored.vision->blocks[1].fc2.format == WeightFormat::kNf4);
  CHECK(stored.vision->merger_fc1.format == WeightFormat::kNf4);
  CHECK(features_of(stored, *ops) == features_of(converted, *ops));
}

}  // namespace
}  // namespace treble::testing
