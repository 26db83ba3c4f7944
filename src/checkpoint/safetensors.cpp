#include "checkpoint/safetensors.h"

#include <fmt/format.h>
#include <treble/error.h>
#include <treble/json.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_set>

#include "checkpoint/tensor_names.h"

namespace treble {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of the format's own library

constexpr std::pair<std::string_view, DType> kDTypes[] = {
    {"BF16", DType::kBF16},      {"F32", DType::kF32}, {"F16", DType::kF16}, {"F64", DType::kF64},
    {"F8_E4M3", DType::kF8E4M3}, {"I64", DType::kI64}, {"I32", DType::kI32}, {"U32", DType::kU32},
    {"I16", DType::kI16},        {"I8", DType::kI8},   {"U8", DType::kU8},   {"BOOL", DType::kBool}};

/// One tensor as the header describes it; begin and end count from the header's end.
struct Description {
  std::string name;
  DType dtype;
  std::array<std::int64_t, TensorView::kMaxRank> shape;
  int rank;
  std::int64_t begin, end;
};

/// The checks of one file; every error names it.
class HeaderReader {
 public:
  HeaderReader(const std::filesystem::path& path, std::span<const std::byte> file) : path_(path), file_(file) {}

  /// The header's text; the data begin at its end.
  std::string_view header() const {
    const std::string_view text(reinterpret_cast<const char*>(file_.data()), file_.size());
    if (text.starts_with("GGUF"))
      fail("is a GGUF file, expected safetensors; convert from the original release, not from its GGUF form");
    if (text.starts_with("version https://git-lfs"))
      fail("is a Git LFS pointer, not the weights; fetch them with `git lfs pull`");
    if (text.size() < kLengthBytes)
      fail(fmt::format("is {} bytes, a safetensors file has at least 8; download it again", text.size()));

    std::uint64_t num_bytes = 0;
    for (std::size_t i = kLengthBytes; i-- > 0;) num_bytes = num_bytes << 8 | std::to_integer<std::uint64_t>(file_[i]);
    if (num_bytes > kMaxHeaderBytes)
      fail(fmt::format("says its header has {} bytes, at most {} are allowed; it is no safetensors file or damaged",
                       num_bytes, kMaxHeaderBytes));
    if (num_bytes > text.size() - kLengthBytes)
      fail(fmt::format("says its header has {} bytes, the file ends after {}; download it again", num_bytes,
                       text.size() - kLengthBytes));
    const std::string_view header = text.substr(kLengthBytes, num_bytes);
    if (!header.starts_with('{')) fail("has a header that is no JSON object; it is no safetensors file or damaged");
    return header;
  }

  std::vector<Description> read(std::string_view header, Json& metadata) const {
    const Json json = parse_json(header, fmt::format("checkpoint: {}: header", path_.string()), ErrorCode::kCheckpoint);
    std::vector<Description> tensors;
    std::unordered_set<std::string_view> names;
    for (const auto& [name, value] : json.as_object()) {
      if (!names.insert(name).second) fail(name, "is in the header twice, expected once; re-export the file");
      if (name == "__metadata__") {
        metadata = value;
      } else {
        tensors.push_back(describe(name, value));
      }
    }
    std::ranges::sort(tensors, {}, [](const Description& t) { return std::tie(t.begin, t.end); });
    check_coverage(tensors, static_cast<std::int64_t>(file_.size() - kLengthBytes - header.size()));
    return tensors;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw Error(ErrorCode::kCheckpoint, fmt::format("checkpoint: {} {}", path_.string(), what));
  }
  [[noreturn]] void fail(std::string_view name, std::string_view what) const {
    throw Error(ErrorCode::kCheckpoint, fmt::format("checkpoint: {}: {} {}", path_.string(), quote_name(name), what));
  }

  Description describe(const std::string& name, const Json& value) const {
    if (!value.is_object())
      fail(name, fmt::format("is {}, expected an object with dtype, shape and data_offsets; re-export the file",
                             value.type_name()));
    Description out{.name = name,
                    .dtype = read_dtype(name, member(name, value, "dtype")),
                    .shape = {},
                    .rank = 0,
                    .begin = 0,
                    .end = 0};
    const std::int64_t num_bytes = read_shape(member(name, value, "shape"), out);

    const std::vector<std::int64_t> offsets = read_sizes(name, member(name, value, "data_offsets"), "data_offsets");
    if (offsets.size() != 2 || offsets[0] > offsets[1])
      fail(name,
           fmt::format("has data_offsets [{}], expected [begin, end]; re-export the file", fmt::join(offsets, ", ")));
    out.begin = offsets[0];
    out.end = offsets[1];
    if (out.end - out.begin != num_bytes)
      fail(name, fmt::format("has {} bytes, [{}] {} needs {}; re-export the file", out.end - out.begin,
                             fmt::join(out.shape.begin(), out.shape.begin() + out.rank, ", "), to_string(out.dtype),
                             num_bytes));
    return out;
  }

  const Json& member(std::string_view name, const Json& object, std::string_view key) const {
    const Json* found = nullptr;
    for (const auto& [k, value] : object.as_object()) {
      if (k != key) continue;
      if (found) fail(name, fmt::format("has two {}, expected one; re-export the file", key));
      found = &value;
    }
    if (!found) fail(name, fmt::format("has no {}; re-export the file", key));
    return *found;
  }

  DType read_dtype(std::string_view name, const Json& value) const {
    if (!value.is_string()) fail(name, fmt::format("has a dtype that is {}, expected a string", value.type_name()));
    for (const auto& [text, dtype] : kDTypes)
      if (text == value.as_string()) return dtype;
    fail(name, fmt::format("has dtype {}, which is not supported; use a bf16, int8-convrot or nf4 release",
                           quote_name(value.as_string())));
  }

  std::vector<std::int64_t> read_sizes(std::string_view name, const Json& value, std::string_view key) const {
    if (!value.is_array()) fail(name, fmt::format("has a {} that is {}, expected an array", key, value.type_name()));
    std::vector<std::int64_t> sizes;
    for (const Json& element : value.as_array()) {
      long long size = 0;
      if (!element.is_number())
        fail(name, fmt::format("has {} in its {}, expected whole numbers", element.type_name(), key));
      if (!element.as_int64(size) || size < 0)
        fail(name, fmt::format("has {} in its {}, expected whole numbers from 0 to 2^63 - 1",
                               element.number_text().substr(0, 40), key));
      sizes.push_back(size);
    }
    return sizes;
  }

  /// Fills in rank and shape. Returns the bytes that they need.
  std::int64_t read_shape(const Json& value, Description& out) const {
    const std::vector<std::int64_t> sizes = read_sizes(out.name, value, "shape");
    if (sizes.size() > TensorView::kMaxRank)
      fail(out.name, fmt::format("has {} dimensions, at most {} are supported", sizes.size(), TensorView::kMaxRank));
    out.rank = static_cast<int>(sizes.size());
    std::ranges::copy(sizes, out.shape.begin());

    // Sizes of 0 are left out of the product, so that strides fit too.
    std::int64_t extent = static_cast<std::int64_t>(size_of(out.dtype));
    bool is_empty = false;
    for (const std::int64_t size : sizes) {
      is_empty |= size == 0;
      if (__builtin_mul_overflow(extent, std::max<std::int64_t>(size, 1), &extent))
        fail(out.name, fmt::format("has shape [{}], more than 2^63 bytes; re-export the file", fmt::join(sizes, ", ")));
    }
    return is_empty ? 0 : extent;
  }

  /// Sorted by place, each tensor begins where the one before ends.
  void check_coverage(const std::vector<Description>& tensors, std::int64_t data_bytes) const {
    std::int64_t covered = 0;
    const Description* before = nullptr;
    for (const Description& tensor : tensors) {
      if (tensor.end > data_bytes)
        fail(tensor.name,
             fmt::format("ends at byte {} of the data, the file has {}; download it again", tensor.end, data_bytes));
      if (tensor.begin < covered)
        fail(tensor.name, fmt::format("begins at byte {} of the data, inside {}; re-export the file", tensor.begin,
                                      quote_name(before->name)));
      if (tensor.begin > covered)
        fail(tensor.name, fmt::format("begins at byte {} of the data, expected {}: no tensor owns the bytes between; "
                                      "re-export the file",
                                      tensor.begin, covered));
      covered = tensor.end;
      before = &tensor;
    }
    if (covered != data_bytes)
      fail(fmt::format("has {} bytes of data, its tensors end at byte {}; download it again", data_bytes, covered));
  }

  const std::filesystem::path& path_;
  std::span<const std::byte> file_;
};

}  // namespace

std::string_view safetensors_dtype(DType dtype) {
  return std::ranges::find(kDTypes, dtype, &std::pair<std::string_view, DType>::second)->first;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : path_(path), file_(path) {
  const HeaderReader reader(path_, file_.bytes());
  const std::string_view header = reader.header();
  const std::byte* data = file_.bytes().data() + kLengthBytes + header.size();
  for (Description& tensor : reader.read(header, metadata_)) {
    // The mapping is read-only; TensorView has no const form and nothing writes to weights.
    TensorView view(const_cast<std::byte*>(data + tensor.begin), tensor.dtype, tensor.shape.data(), tensor.rank);
    tensors_.push_back({std::move(tensor.name), view});
  }
}

}  // namespace treble
