#include "checkpoint/safetensors_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <treble/error.h>
#include <treble/json.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <tuple>
#include <utility>

#include "checkpoint/safetensors.h"

namespace treble {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kAlignment = 8;

[[noreturn]] void fail_with_errno(const std::filesystem::path& path, const char* action) {
  const std::string reason = std::generic_category().message(errno);
  throw Error(ErrorCode::kDevice, fmt::format("file: {} cannot be {}: {}", path.string(), action, reason));
}

Json describe(const PlannedTensor& tensor, std::uint64_t begin) {
  Json::Array shape;
  for (const std::int64_t size : tensor.shape) shape.push_back(Json::integer(size));
  const auto end = static_cast<long long>(begin + tensor.num_bytes());
  return Json::Object{{"dtype", std::string(safetensors_dtype(tensor.dtype))},
                      {"shape", std::move(shape)},
                      {"data_offsets", Json::Array{Json::integer(static_cast<long long>(begin)), Json::integer(end)}}};
}

PlannedTensor text_tensor(std::string name, std::size_t num_bytes) {
  return {.name = std::move(name), .dtype = DType::kU8, .shape = {static_cast<std::int64_t>(num_bytes)}};
}

}  // namespace

std::uint64_t PlannedTensor::num_bytes() const {
  std::uint64_t count = size_of(dtype);
  for (const std::int64_t size : shape) count *= static_cast<std::uint64_t>(size);
  return count;
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, std::vector<PlannedTensor> tensors,
                                     std::vector<std::string> texts)
    : path_(path), texts_(std::move(texts)) {
  std::ranges::sort(tensors, {},
                    [](const PlannedTensor& t) { return std::tuple(-static_cast<int>(size_of(t.dtype)), t.name); });
  for (PlannedTensor& tensor : tensors) {
    index_.emplace(tensor.name, places_.size());
    places_.push_back({.tensor = std::move(tensor), .begin = texts_begin_});
    texts_begin_ += places_.back().tensor.num_bytes();
  }
  // The header of the longest texts is the longest header; blanks fill up what the real one leaves.
  for (const std::string& name : texts_) text_bytes_.emplace(name, std::string(kMostTextBytes, ' '));
  header_bytes_ = (header().size() + kAlignment - 1) / kAlignment * kAlignment;
  text_bytes_.clear();

  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail_with_errno(path_, "created");
}

SafetensorsWriter::~SafetensorsWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string SafetensorsWriter::header() const {
  // Transformers loads no file that does not say which library's tensors it holds.
  Json::Object json{{"__metadata__", Json::Object{{"format", "pt"}}}};
  for (const Place& place : places_) json.emplace_back(place.tensor.name, describe(place.tensor, place.begin));
  std::uint64_t begin = texts_begin_;
  for (const std::string& name : texts_) {
    const PlannedTensor tensor = text_tensor(name, text_bytes_.at(name).size());
    json.emplace_back(name, describe(tensor, begin));
    begin += tensor.num_bytes();
  }
  return dump_json(json);
}

void SafetensorsWriter::write(std::string_view name, std::uint64_t offset, std::span<const std::byte> bytes) {
  Place& place = places_.at(index_.find(name)->second);
  if (offset + bytes.size() > place.tensor.num_bytes())
    throw Error(ErrorCode::kInternal, fmt::format("safetensors: {} has more bytes than planned", name));
  write_at(kLengthBytes + header_bytes_ + place.begin + offset,
           {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  place.written += bytes.size();
}

void SafetensorsWriter::set_text(std::string_view name, std::string text) {
  text_bytes_.insert_or_assign(std::string(name), std::move(text));
}

void SafetensorsWriter::finish() {
  std::string texts;
  for (const std::string& name : texts_) {
    const auto found = text_bytes_.find(name);
    if (found == text_bytes_.end() || found->second.size() > kMostTextBytes)
      throw Error(ErrorCode::kInternal, fmt::format("safetensors: {} was not written as planned", name));
    texts += found->second;
  }
  for (const Place& place : places_)
    if (place.written != place.tensor.num_bytes())
      throw Error(ErrorCode::kInternal, fmt::format("safetensors: {} was not written as planned", place.tensor.name));
  write_at(kLengthBytes + header_bytes_ + texts_begin_, texts);

  std::string text = header();
  text.resize(header_bytes_, ' ');
  std::string length;
  for (int shift = 0; shift < 64; shift += 8) length += static_cast<char>(header_bytes_ >> shift);
  write_at(0, length + text);
  if (::fsync(descriptor_) != 0) fail_with_errno(path_, "written");
  if (::close(std::exchange(descriptor_, -1)) != 0) fail_with_errno(path_, "written");
}

void SafetensorsWriter::write_at(std::uint64_t position, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(position));
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
      position += static_cast<std::uint64_t>(count);
    } else if (errno != EINTR) {
      fail_with_errno(path_, "written");
    }
  }
}

}  // namespace treble
