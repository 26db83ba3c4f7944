#pragma once

#include <doctest/doctest.h>
#include <treble/json.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/testing/temp_folder.h"
#include "checkpoint/safetensors.h"

/// Release files for tests: small ones made on the spot, and copies of the micro release with one thing changed.
namespace treble::testing {

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  REQUIRE(out.good());
}

/// A file of that header and data, whether they fit together or not.
inline std::string safetensors_bytes(std::string_view header, std::string_view data) {
  std::string out;
  for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>(header.size() >> shift);
  return out.append(header).append(data);
}

/// A tensor to write.
struct FileTensor {
  std::string name;
  std::string dtype;  ///< as the file spells it: "BF16"
  std::vector<std::int64_t> shape;
  std::string data;
};

/// That many bytes of zeros.
inline FileTensor zeros(std::string name, std::string dtype, std::vector<std::int64_t> shape, std::size_t num_bytes) {
  return {std::move(name), std::move(dtype), std::move(shape), std::string(num_bytes, '\0')};
}

inline void write_safetensors(const std::filesystem::path& path, const std::vector<FileTensor>& tensors) {
  Json::Object header;
  std::string data;
  for (const FileTensor& tensor : tensors) {
    Json::Array shape;
    for (const std::int64_t size : tensor.shape) shape.push_back(Json::integer(size));
    const auto begin = static_cast<long long>(data.size());
    data += tensor.data;
    const auto end = static_cast<long long>(data.size());
    header.emplace_back(tensor.name,
                        Json::Object{{"dtype", tensor.dtype},
                                     {"shape", std::move(shape)},
                                     {"data_offsets", Json::Array{Json::integer(begin), Json::integer(end)}}});
  }
  write_file(path, safetensors_bytes(dump_json(header), data));
}

inline std::vector<FileTensor> read_safetensors(const std::filesystem::path& path) {
  std::vector<FileTensor> out;
  const SafetensorsFile file(path);
  for (const SafetensorsFile::Tensor& tensor : file.tensors()) {
    FileTensor& copy = out.emplace_back();
    copy.name = tensor.name;
    copy.dtype = safetensors_dtype(tensor.view.dtype());
    for (int dim = 0; dim < tensor.view.rank(); ++dim) copy.shape.push_back(tensor.view.size(dim));
    copy.data.assign(static_cast<const char*>(tensor.view.data()), tensor.view.num_bytes());
  }
  return out;
}

/// Reads a file's tensors, lets `edit` change them and writes them back.
inline void edit_safetensors(const std::filesystem::path& path,
                             const std::function<void(std::vector<FileTensor>&)>& edit) {
  std::vector<FileTensor> tensors = read_safetensors(path);
  edit(tensors);
  write_safetensors(path, tensors);
}

inline std::filesystem::path micro_release() {
  return std::filesystem::path(TREBLE_TEST_DATA) / "micro" / "release";
}

/// All files of a release of tests/data, writable. @param name  "micro", "micro-nf4"
inline void copy_micro_release(const std::filesystem::path& folder, std::string_view name = "micro") {
  const std::filesystem::path release = std::filesystem::path(TREBLE_TEST_DATA) / name / "release";
  for (const auto& file : std::filesystem::directory_iterator(release)) {
    const std::filesystem::path copy = folder / file.path().filename();
    std::filesystem::copy_file(file.path(), copy);
    std::filesystem::permissions(copy, std::filesystem::perms::owner_write, std::filesystem::perm_options::add);
  }
}

/// Splits the copied `model.safetensors` into two shards and an index.
inline void split_into_shards(const std::filesystem::path& folder) {
  const std::vector<FileTensor> tensors = read_safetensors(folder / "model.safetensors");
  const auto middle = tensors.begin() + static_cast<std::ptrdiff_t>(tensors.size() / 2);
  Json::Object weight_map;
  const auto write_shard = [&](const std::string& name, std::vector<FileTensor> part) {
    for (const FileTensor& tensor : part) weight_map.emplace_back(tensor.name, name);
    write_safetensors(folder / name, part);
  };
  write_shard("model-00001-of-00002.safetensors", {tensors.begin(), middle});
  write_shard("model-00002-of-00002.safetensors", {middle, tensors.end()});
  write_file(folder / "model.safetensors.index.json", dump_json(Json::Object{{"weight_map", std::move(weight_map)}}));
  std::filesystem::remove(folder / "model.safetensors");
}

}  // namespace treble::testing
