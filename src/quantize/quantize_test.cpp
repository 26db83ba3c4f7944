#include "quantize/quantize.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <treble/error.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "checkpoint/checkpoint.h"
#include "checkpoint/shard_index.h"
#include "checkpoint/testing/release_files.h"

namespace treble {
namespace {

namespace fs = std::filesystem;
using testing::FileTensor;
using testing::micro_release;
using testing::read_file;
using testing::TempFolder;
using testing::write_file;

using Tensors = std::map<std::string, FileTensor>;

Tensors tensors_of(const fs::path& release) {
  Tensors out;
  const Checkpoint checkpoint(release);
  for (const SafetensorsFile& file : checkpoint.files())
    for (FileTensor& tensor : testing::read_safetensors(file.path())) out.emplace(tensor.name, std::move(tensor));
  return out;
}

fs::path fixture(std::string_view name) {
  return fs::path(TREBLE_TEST_DATA) / name / "release";
}

std::string refusal(const QuantizeOptions& options, ErrorCode code) {
  try {
    quantize_release(options);
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, std::string_view part) {
  CAPTURE(text);
  return text.find(part) != std::string::npos;
}

std::size_t num_different_bytes(const std::string& a, const std::string& b) {
  REQUIRE(a.size() == b.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i];
  return count;
}

float float_at(const FileTensor& tensor, std::size_t i) {
  float value = 0;
  std::memcpy(&value, tensor.data.data() + 4 * i, 4);
  return value;
}

TEST_CASE("quantize: NF4 of the small release is what bitsandbytes made of it") {
  const TempFolder folder;
  quantize_release({.release = micro_release(), .out = folder / "nf4", .format = QuantizeFormat::kNf4});
  const Tensors made = tensors_of(folder / "nf4");
  const Tensors expected = tensors_of(fixture("micro-nf4"));
  std::size_t num_codes = 0, num_scales = 0, different_scales = 0;
  for (const auto& [name, tensor] : expected) {
    CAPTURE(name);
    REQUIRE(made.contains(name));
    const FileTensor& ours = made.at(name);
    CHECK(ours.dtype == tensor.dtype);
    if (name.ends_with("quant_state.bitsandbytes__nf4")) {
      CHECK(ours.data.substr(0, ours.data.rfind(' ')) == tensor.data.substr(0, tensor.data.rfind(' ')));
      continue;  // after the last blank is the mean of the scales, whose last digits are its summation's
    }
    CHECK(ours.shape == tensor.shape);
    if (name.ends_with(".absmax")) {
      num_scales += tensor.data.size();
      different_scales += num_different_bytes(ours.data, tensor.data);
    } else if (name.ends_with(".nested_absmax") || name.ends_with(".nested_quant_map")) {
      // Scales less their mean, and a map that another version of the library rounded otherwise in some places.
      for (std::size_t i = 0; i < tensor.data.size() / 4; ++i)
        CHECK(float_at(ours, i) == doctest::Approx(float_at(tensor, i)).epsilon(1e-6));
    } else {
      num_codes += tensor.data.size();
      CHECK(ours.data == tensor.data);
    }
  }
  MESSAGE(num_codes, " bytes equal, ", different_scales, " of ", num_scales, " 8-bit scales differ");
  // bitsandbytes on a CPU rounds scales by a table of 65,536 entries, so that some near a border fall to its other
  // side.
  CHECK(static_cast<double>(different_scales) < 0.005 * static_cast<double>(num_scales));
}

TEST_CASE("quantize: INT8 ConvRot of the small release has the codes that comfy-kitchen gave it") {
  const TempFolder folder;
  quantize_release({.release = micro_release(), .out = folder / "int8"});
  const Tensors made = tensors_of(folder / "int8");
  std::size_t num_codes = 0, different = 0;
  for (const auto& [name, tensor] : tensors_of(fixture("micro-int8"))) {
    if (name.ends_with(".bias") && !made.contains(name)) continue;  // the fixture has random ones
    CAPTURE(name);
    REQUIRE(made.contains(name));
    const FileTensor& ours = made.at(name);
    CHECK(ours.dtype == tensor.dtype);
    CHECK(ours.shape == tensor.shape);
    if (tensor.dtype == "I8") {
      num_codes += tensor.data.size();
      different += num_different_bytes(ours.data, tensor.data);
    } else if (name.ends_with(".weight_scale")) {
      for (std::size_t i = 0; i < tensor.data.size() / 4; ++i)
        CHECK(float_at(ours, i) == doctest::Approx(float_at(tensor, i)).epsilon(1e-6));
    } else {
      CHECK(ours.data == tensor.data);
    }
  }
  MESSAGE(different, " of ", num_codes, " codes differ");
  // The rotation there is a matrix product, whose sums have another order: weights on a border fall to its other side.
  CHECK(static_cast<double>(different) < 1e-4 * static_cast<double>(num_codes));
}

TEST_CASE("quantize: INT8 keeps everything but the large text projections byte for byte, files included") {
  const TempFolder folder;
  const fs::path source = folder / "source", out = folder / "out";
  fs::create_directory(source);
  testing::copy_micro_release(source);
  write_file(source / "README.md", "my model");
  fs::create_directories(source / "extra" / "deep");
  write_file(source / "extra" / "deep" / "notes", "x");
  fs::create_directory(source / ".git");
  write_file(source / ".git" / "HEAD", "x");
  fs::create_symlink("README.md", source / "link.md");
  const QuantizeSummary summary = quantize_release({.release = source, .out = out, .format = QuantizeFormat::kInt8});

  for (const auto& entry : fs::recursive_directory_iterator(source)) {
    const fs::path relative = fs::relative(entry.path(), source);
    if (entry.is_directory() || relative == "model.safetensors" || relative.string().starts_with(".git")) continue;
    CAPTURE(relative);
    CHECK(!fs::is_symlink(out / relative));
    CHECK(read_file(out / relative) == read_file(entry.path()));
  }
  CHECK(!fs::exists(out / ".git"));
  const Tensors before = tensors_of(source), after = tensors_of(out);
  std::int64_t converted = 0;
  for (const auto& [name, tensor] : before) {
    if (after.at(name).dtype == "I8") {
      ++converted;
      const std::string module = name.substr(0, name.size() - 7);
      CHECK(after.at(module + ".comfy_quant").data == R"({"format": "int8_tensorwise", "convrot": false})");
    } else {
      CHECK(after.at(name).data == tensor.data);
      CHECK(after.at(name).shape == tensor.shape);
    }
  }
  CHECK(converted == 3 * 3 + 4 + 4 * 3);  // three delta nets, one attention, four MLPs
  CHECK(summary.converted == converted);
  CHECK(summary.bytes_after < summary.bytes_before);
  CHECK(static_cast<std::size_t>(converted) * 2 + before.size() == after.size());
}

TEST_CASE(
    "quantize: NF4 adds a quantization_config that names what was kept, and changes nothing else of config.json") {
  const TempFolder folder;
  const QuantizeSummary summary = quantize_release({.release = micro_release(),
                                                    .out = folder / "out",
                                                    .format = QuantizeFormat::kNf4,
                                                    .keep = {"*.layers.3.*", "model.visual.merger.linear_fc1"}});
  CHECK(summary.kept == 4 + 3 + 1);
  const auto config_of = [](const fs::path& path) {
    return parse_json(read_file(path / "config.json"), "test", ErrorCode::kCheckpoint);
  };
  Json config = config_of(folder / "out");
  const Json added = config.as_object().back().second;
  CHECK(config.as_object().back().first == "quantization_config");
  config.as_object().pop_back();
  CHECK(config == config_of(micro_release()));
  const Json::Array& skipped = added.find("llm_int8_skip_modules")->as_array();
  CHECK(skipped.size() == 9);
  CHECK(skipped[0].as_string() == "lm_head");
  CHECK(std::ranges::find(skipped, Json("model.language_model.layers.3.self_attn.q_proj")) != skipped.end());

  const Tensors after = tensors_of(folder / "out");
  CHECK(after.at("model.language_model.layers.3.mlp.up_proj.weight").dtype == "BF16");
  CHECK(after.at("model.language_model.layers.2.mlp.up_proj.weight").dtype == "U8");
  CHECK(after.at("model.visual.merger.linear_fc2.weight").dtype == "U8");
}

TEST_CASE("quantize: shards make the same tensors as one file, and large releases become shards") {
  const TempFolder folder;
  const fs::path sharded = folder / "sharded";
  fs::create_directory(sharded);
  testing::copy_micro_release(sharded);
  testing::split_into_shards(sharded);
  constexpr std::uint64_t kMost = 400'000;
  for (const QuantizeFormat format : {QuantizeFormat::kInt8Convrot, QuantizeFormat::kNf4}) {
    const std::string name(to_string(format));
    quantize_release({.release = micro_release(), .out = folder / (name + "-one"), .format = format});
    const QuantizeSummary summary = quantize_release(
        {.release = sharded, .out = folder / (name + "-many"), .format = format, .max_shard_bytes = kMost});
    CHECK(!fs::exists(folder / (name + "-one") / kIndexFile));
    CHECK(!fs::exists(folder / (name + "-many") / kSingleFile));
    CHECK(!fs::exists(folder / (name + "-many") / "model-00001-of-00002.safetensors"));

    const Tensors one = tensors_of(folder / (name + "-one")), many = tensors_of(folder / (name + "-many"));
    REQUIRE(one.size() == many.size());
    for (const auto& [tensor, value] : one) CHECK(many.at(tensor).data == value.data);

    const ShardIndex index = read_shard_index(folder / (name + "-many") / kIndexFile);
    CHECK(index.shards.size() > 3);
    CHECK(static_cast<std::int64_t>(index.shards.size()) == summary.shards);
    for (const std::string& shard : index.shards) {
      const std::vector<FileTensor> tensors = testing::read_safetensors(folder / (name + "-many") / shard);
      std::uint64_t largest = 0, total = 0;
      for (const FileTensor& tensor : tensors) {
        largest = std::max<std::uint64_t>(largest, tensor.data.size());
        total += tensor.data.size();
      }
      constexpr std::uint64_t kTexts = 20'000;  // descriptions are not counted
      CHECK((total < kMost + kTexts || total < largest + kTexts));
    }
  }
}

TEST_CASE("quantize: group sizes are written where readers look for them") {
  const TempFolder folder;
  quantize_release({.release = micro_release(), .out = folder / "int8", .group_size = 64});
  CHECK(contains(tensors_of(folder / "int8").at("model.language_model.layers.0.mlp.up_proj.comfy_quant").data,
                 R"("convrot_groupsize": 64)"));
  quantize_release(
      {.release = micro_release(), .out = folder / "nf4", .format = QuantizeFormat::kNf4, .group_size = 128});
  const Tensors nf4 = tensors_of(folder / "nf4");
  CHECK(contains(nf4.at("model.language_model.layers.0.mlp.up_proj.weight.quant_state.bitsandbytes__nf4").data,
                 R"("blocksize": 128)"));
  CHECK(nf4.at("model.language_model.layers.0.mlp.up_proj.weight.absmax").data.size() == 256 * 256 / 128);
}

TEST_CASE("quantize: options that make no sense are refused before anything is written") {
  const TempFolder folder;
  QuantizeOptions options{.release = micro_release(), .out = folder / "out"};
  const auto refused_group = [&](QuantizeFormat format, std::int64_t size) {
    QuantizeOptions changed = options;
    changed.format = format;
    changed.group_size = size;
    return refusal(changed, ErrorCode::kArgument);
  };
  CHECK(contains(refused_group(QuantizeFormat::kInt8, 64), "a row has one scale"));
  CHECK(contains(refused_group(QuantizeFormat::kInt8Convrot, 512), "a power of four"));
  CHECK(contains(refused_group(QuantizeFormat::kNf4, 48), "a power of two"));
  options.group_size = 1024;
  CHECK(contains(refusal(options, ErrorCode::kCheckpoint), "which groups of 1024 do not divide"));
  options.group_size = 0;
  options.keep = {"*.none"};
  CHECK(contains(refusal(options, ErrorCode::kArgument), "stands for no module"));
  options.keep = {"*"};
  CHECK(contains(refusal(options, ErrorCode::kArgument), "nothing is left to convert"));
  options.keep = {};
  options.release = fixture("micro-nf4");
  CHECK(contains(refusal(options, ErrorCode::kCheckpoint), "is stored as nf4 already"));
  options.release = fixture("micro-int8");
  CHECK(contains(refusal(options, ErrorCode::kCheckpoint), "is stored as int8-convrot already"));
  options.release = folder / "none";
  CHECK(contains(refusal(options, ErrorCode::kCheckpoint), "does not exist"));
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("quantize: a release is not written into itself or around itself") {
  const TempFolder folder;
  const fs::path source = folder / "source";
  fs::create_directory(source);
  testing::copy_micro_release(source);
  for (const fs::path& out : {source, source / "inside", folder.path(), source / ".." / "source"})
    CHECK(contains(refusal({.release = source, .out = out, .is_replaced = true}, ErrorCode::kArgument),
                   "lie in each other"));
}

TEST_CASE("quantize: a weight that is not a number stops the run, which leaves nothing behind") {
  const TempFolder folder;
  const fs::path source = folder / "source";
  fs::create_directory(source);
  testing::copy_micro_release(source);
  testing::edit_safetensors(source / "model.safetensors", [](std::vector<FileTensor>& tensors) {
    for (FileTensor& tensor : tensors)
      if (tensor.name.ends_with("layers.2.mlp.up_proj.weight")) tensor.data.replace(2 * 258, 2, "\xc0\x7f");
  });
  for (const QuantizeFormat format : {QuantizeFormat::kInt8Convrot, QuantizeFormat::kNf4}) {
    const QuantizeOptions options{.release = source, .out = folder / "out", .format = format};
    CHECK(contains(refusal(options, ErrorCode::kCheckpoint), "layers.2.mlp.up_proj\" has nan at [1, 2]"));
    CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
  }
}

/// What quantising a changed copy of the small release is refused with; nothing is written then.
template <typename Change>
std::string refusal_after(const Change& change) {
  const TempFolder folder;
  const fs::path source = folder / "source";
  fs::create_directory(source);
  testing::copy_micro_release(source);
  change(source);
  const std::string error = refusal({.release = source, .out = folder / "out"}, ErrorCode::kCheckpoint);
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
  return error;
}

TEST_CASE("quantize: a release that could not be used is refused with what it lacks") {
  for (const char* name : {"config.json", "joint_head_config.json", "tokenizer.json", "tokenizer_config.json"}) {
    CHECK(contains(refusal_after([&](const fs::path& source) { fs::remove(source / name); }),
                   std::string("has no ") + name));
    CHECK(contains(refusal_after([&](const fs::path& source) { write_file(source / name, "{bad"); }), name));
  }
  const auto without = [](std::string_view name) {
    return [name](const fs::path& source) {
      testing::edit_safetensors(source / "model.safetensors", [&](std::vector<FileTensor>& tensors) {
        std::erase_if(tensors, [&](const FileTensor& t) { return t.name.starts_with(name); });
      });
    };
  };
  CHECK(contains(refusal_after(without("model.language_model.norm.weight")), "has no tensor \"text.norm.weight\""));
  const TempFolder folder;
  const fs::path source = folder / "source";
  fs::create_directory(source);
  testing::copy_micro_release(source);
  fs::remove(source / "processor_config.json");
  without("model.visual.")(source);
  quantize_release({.release = source, .out = folder / "text only"});  // needs neither
}

TEST_CASE("quantize: a release with two sets of weights is refused: only one of them would be converted") {
  const std::string error = refusal_after([](const fs::path& source) {
    const std::string whole = read_file(source / "model.safetensors");
    testing::split_into_shards(source);
    write_file(source / "model.safetensors", whole);
  });
  CHECK(contains(error, "keep one of the two"));
}

TEST_CASE("quantize: a file of the release that cannot be copied is named as what it is, before anything is written") {
  CHECK(contains(refusal_after([](const fs::path& source) { fs::create_symlink("nothing", source / "dangling"); }),
                 "source/dangling cannot be read: it is a link to nothing"));
  CHECK(contains(refusal_after([](const fs::path& source) { fs::create_symlink("loop", source / "loop"); }),
                 "source/loop cannot be read: Too many levels of symbolic links"));
  CHECK(contains(refusal_after([](const fs::path& source) {
                   fs::create_directory(source / "inner");
                   fs::create_directory_symlink("..", source / "inner" / "around");
                 }),
                 "inner/around cannot be read: it is a link to a folder"));
  CHECK(contains(refusal_after([](const fs::path& source) { REQUIRE(::mkfifo((source / "pipe").c_str(), 0600) == 0); }),
                 "source/pipe cannot be read: it is neither a file nor a folder"));
}

TEST_CASE("quantize: an output without a name, or with one that no system takes, is refused") {
  QuantizeOptions options{.release = micro_release(), .out = ""};
  CHECK(contains(refusal(options, ErrorCode::kArgument), "--out is empty"));
  const TempFolder folder;
  options.out = folder / std::string(300, 'a');
  CHECK(contains(refusal(options, ErrorCode::kArgument), "File name too long"));
  fs::create_symlink("loop", folder / "loop");
  options.out = folder / "loop" / "out";
  CHECK(contains(refusal(options, ErrorCode::kArgument), "Too many levels of symbolic links"));
}

TEST_CASE("quantize: progress goes from nothing to all, and stops the run by throwing") {
  const TempFolder folder;
  const QuantizeOptions options{.release = micro_release(), .out = folder / "out"};
  std::uint64_t last = 0, total = 0;
  const QuantizeSummary summary = quantize_release(options, [&](std::uint64_t done, std::uint64_t all) {
    CHECK(done >= last);
    last = done;
    total = all;
  });
  CHECK(last == total);
  CHECK(total == summary.bytes_before);

  const auto stop = [](std::uint64_t done, std::uint64_t) {
    if (done > 0) throw Error(ErrorCode::kArgument, "stopped");
  };
  CHECK_THROWS_AS(quantize_release({.release = micro_release(), .out = folder / "stopped"}, stop), Error);
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

}  // namespace
}  // namespace treble
