// Quantised releases that were cut short or changed on their way: an error that names the file, never a crash.

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <string>

#include "checkpoint/testing/release_files.h"
#include "model/weights.h"
#include "ops/testing/backends.h"

namespace treble::testing {
namespace {

constexpr const char* kQuantised[] = {"micro-int8", "micro-nf4"};
constexpr const char* kModule = "model.language_model.layers.1.mlp.up_proj";

/// What loading a folder says, or nothing if it loads.
std::optional<std::string> load_error(const std::filesystem::path& folder) {
  const std::unique_ptr<Ops> ops = backends().front().make();
  try {
    load_model(folder, *ops);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kCheckpoint);
    return error.what();
  }
  return std::nullopt;
}

bool contains(const std::optional<std::string>& text, std::string_view part) {
  CAPTURE(text.value_or("no error"));
  return text && text->find(part) != std::string::npos;
}

/// What loading says after one tensor's bytes were changed.
template <typename Change>
std::optional<std::string> error_after(const char* release, const std::string& tensor, const Change& change) {
  const TempFolder folder;
  copy_micro_release(folder.path(), release);
  edit_safetensors(folder / "model.safetensors", [&](std::vector<FileTensor>& tensors) {
    const auto found = std::ranges::find(tensors, tensor, &FileTensor::name);
    REQUIRE(found != tensors.end());
    change(*found);
  });
  return load_error(folder.path());
}

void set_float(FileTensor& tensor, std::size_t index, float value) {
  std::memcpy(tensor.data.data() + 4 * index, &value, 4);
}

TEST_CASE("damaged release: a quantised file cut short anywhere is an error that names it") {
  for (const char* release : kQuantised) {
    const TempFolder folder;
    copy_micro_release(folder.path(), release);
    const std::string whole = read_file(folder / "model.safetensors");
    for (const std::size_t keep :
         {std::size_t{0}, std::size_t{7}, std::size_t{100}, std::size_t{20'000}, whole.size() / 2, whole.size() - 1}) {
      CAPTURE(keep);
      write_file(folder / "model.safetensors", std::string_view(whole).substr(0, keep));
      CHECK(contains(load_error(folder.path()), "model.safetensors"));
    }
  }
}

TEST_CASE("damaged release: a file whose end was never written, or whose header was, is an error") {
  for (const char* release : kQuantised) {
    const TempFolder folder;
    copy_micro_release(folder.path(), release);
    std::string bytes = read_file(folder / "model.safetensors");
    write_file(folder / "model.safetensors", bytes + std::string(16, '\0'));
    CHECK(contains(load_error(folder.path()), "its tensors end at byte"));
    std::fill_n(bytes.begin(), 4096, '\0');  // a disk that was full, a page that never came
    write_file(folder / "model.safetensors", bytes);
    CHECK(contains(load_error(folder.path()), "model.safetensors"));
  }
}

TEST_CASE("damaged release: a flipped bit of the header or of a description is an error or changes no shape") {
  std::mt19937 random(17);
  for (const char* release : kQuantised) {
    const TempFolder folder;
    copy_micro_release(folder.path(), release);
    const std::string whole = read_file(folder / "model.safetensors");
    std::uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, whole.data(), 8);
    int num_errors = 0;
    constexpr int kFlips = 60;
    for (int i = 0; i < kFlips; ++i) {
      std::string bytes = whole;
      const std::size_t bit = random() % (8 * (8 + header_bytes));
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
      write_file(folder / "model.safetensors", bytes);
      if (load_error(folder.path())) ++num_errors;
    }
    // What is left are names of tensors that nothing reads (the vision tower's).
    CHECK(num_errors > kFlips / 2);
  }
  const std::pair<const char*, std::string> descriptions[] = {
      {"micro-int8", std::string(kModule) + ".comfy_quant"},
      {"micro-nf4", std::string(kModule) + ".weight.quant_state.bitsandbytes__nf4"}};
  for (const auto& [release, name] : descriptions) {
    for (std::size_t i = 0; i < 40; ++i) {
      const std::size_t bit = random();
      error_after(release, name, [&](FileTensor& tensor) {  // whatever it says, it says it as an Error
        char& byte = tensor.data[bit / 8 % tensor.data.size()];
        byte = static_cast<char>(byte ^ (1 << bit % 8));
      });
    }
  }
}

TEST_CASE("damaged release: scales that are 0, negative or not finite are errors that name the module") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float scale : {0.0f, -0.01f, nan, std::numeric_limits<float>::infinity()}) {
    CAPTURE(scale);
    const auto error = error_after("micro-int8", std::string(kModule) + ".weight_scale",
                                   [&](FileTensor& tensor) { set_float(tensor, 3, scale); });
    CHECK(contains(error, "text.layers.1.mlp.up_proj"));
    CHECK(contains(error, "weight_scale at 3"));
  }
  for (const float scale : {-0.01f, nan}) {
    CAPTURE(scale);
    const auto error = error_after("micro-nf4", std::string(kModule) + ".weight.nested_absmax",
                                   [&](FileTensor& tensor) { set_float(tensor, 2, scale); });
    CHECK(contains(error, "text.layers.1.mlp.up_proj"));
    CHECK(contains(error, "weight.nested_absmax at 2"));
  }
  // A block of equal scales has a nested scale of 0 and is a sound one.
  CHECK(!error_after("micro-nf4", std::string(kModule) + ".weight.nested_absmax",
                     [&](FileTensor& tensor) { set_float(tensor, 2, 0); }));
}

TEST_CASE("damaged release: descriptions that contradict the bytes are errors with both") {
  const auto replace = [](std::string_view from, std::string_view to) {
    return [=](FileTensor& tensor) {
      const std::size_t at = tensor.data.find(from);
      REQUIRE(at != std::string::npos);
      tensor.data.replace(at, from.size(), to);
      tensor.shape = {static_cast<std::int64_t>(tensor.data.size())};
    };
  };
  const std::string state = std::string(kModule) + ".weight.quant_state.bitsandbytes__nf4";
  CHECK(contains(error_after("micro-nf4", state, replace("[256, 256]", "[256, 255]")),
                 "32768 bytes of codes, [256, 255] needs 32640"));
  CHECK(contains(error_after("micro-nf4", state, replace("[256, 256]", "[65536, 1]")), "[65536, 1]"));
  CHECK(contains(error_after("micro-nf4", state, replace("[256, 256]", "[256, -256]")), "shape"));
  CHECK(contains(error_after("micro-nf4", state, replace("\"blocksize\": 64", "\"blocksize\": 128")), "weight.absmax"));
  CHECK(contains(error_after("micro-nf4", state, replace("\"nested_blocksize\": 256", "\"nested_blocksize\": 64")),
                 "weight.nested_absmax"));
  CHECK(contains(error_after("micro-nf4", state, replace("\"quant_type\"", "\"quant_tipe\"")), "quant_type"));
  const std::string comfy = std::string(kModule) + ".comfy_quant";
  CHECK(contains(error_after("micro-int8", comfy, replace("256", "1024")), "groups of 1024"));
  CHECK(contains(error_after("micro-int8", comfy, replace("256", "512")), "groups of 512"));
  CHECK(contains(error_after("micro-int8", comfy, replace("256", "-4")), "groups of -4"));
}

}  // namespace
}  // namespace treble::testing
